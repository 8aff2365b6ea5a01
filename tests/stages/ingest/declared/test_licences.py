"""Licences by address, by text, by tag and by the nearest folder."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.ingest.rights import (
    first_licence,
    is_licence_file,
    licence_from_source,
    licence_from_text,
    licence_from_url,
    nearest_licence,
    spdx_expression,
)

MIT = """Copyright (c) 2020 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software, to deal in it without restriction, subject to the following
conditions: The above copyright notice and this permission notice shall be
included in all copies. THE SOFTWARE IS PROVIDED "AS IS"."""
BSD_2 = """Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:"""
BSD_3 = BSD_2 + " Neither the name of X may be used to endorse or promote products derived"
BSD_4 = BSD_3 + " All advertising materials mentioning features of this software must display"
ISC = """Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice appear."""
ZLIB = """This software is provided 'as-is', without any express or implied warranty. In no
event will the authors be held liable. The origin of this software must not be misrepresented;"""


@pytest.mark.parametrize(
    ("url", "licence"),
    [
        ("https://creativecommons.org/licenses/by-nc-sa/4.0/", "CC-BY-NC-SA-4.0"),
        ("http://creativecommons.org/licenses/by/2.0", "CC-BY-2.0"),
        ("//creativecommons.org/licenses/BY-SA/3.0/deed.en", "CC-BY-SA-3.0"),
        ("https://www.creativecommons.org/licenses/by/4.0/legalcode", "CC-BY-4.0"),
        ("https://creativecommons.org/licenses/by-sa/3.0/de/", "CC-BY-SA-3.0-DE"),
        ("https://creativecommons.org/licenses/by/2.5/xx/", "CC-BY-2.5"),
        ("https://creativecommons.org/licenses/by-nc/", "CC-BY-NC-4.0"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "CC-PDM-1.0"),
        ("https://www.gnu.org/licenses/agpl-3.0.html", "AGPL-3.0-only"),
        ("https://www.gnu.org/copyleft/fdl.html", "GFDL-1.3-only"),
        ("https://opensource.org/licenses/mit-license.php", "MIT"),
        ("https://opensource.org/license/BSD-3-Clause", "BSD-3-Clause"),
        ("http://www.apache.org/licenses/LICENSE-2.0", "Apache-2.0"),
        ("https://www.mozilla.org/en-US/MPL/2.0/", "MPL-2.0"),
        ("https://opendatacommons.org/licenses/odbl/1-0/", "ODbL-1.0"),
        ("https://creativecommons.org/", None),
        ("https://creativecommons.org/licenses/by-xx/4.0/", None),
        ("https://creativecommons.org/licenses/by/9.9/", None),
        ("https://notcreativecommons.org/licenses/by/4.0/", None),
        ("/terms", None),
    ],
)
def test_addresses_are_read_as_spdx_names_them(url: str, licence: str | None) -> None:
    assert licence_from_url(url) == licence


def test_the_first_known_address_wins() -> None:
    urls = ["/terms", "https://creativecommons.org/licenses/by/4.0/", "//gnu.org/licenses/gpl-3.0"]
    assert first_licence(urls) == ("CC-BY-4.0", urls[1])
    assert first_licence(["/terms"]) == (None, None)


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        (MIT, "MIT"),
        (MIT.replace("and this permission notice ", ""), "MIT-0"),
        (BSD_2, "BSD-2-Clause"),
        (BSD_3, "BSD-3-Clause"),
        (BSD_4, "BSD-4-Clause"),
        (ISC, "ISC"),
        (ISC.replace(", provided that the above copyright notice appear", ""), "0BSD"),
        (ZLIB, "Zlib"),
        ("Apache License\n   Version 2.0, January 2004", "Apache-2.0"),
        ("Mozilla Public License Version 2.0\n====", "MPL-2.0"),
        ("Mozilla Public License, v. 2.0.", "MPL-2.0"),
        ("GNU GENERAL PUBLIC LICENSE\nVersion 2, June 1991", "GPL-2.0-only"),
        ("GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007", "GPL-3.0-only"),
        ("GNU LESSER GENERAL PUBLIC LICENSE\nVersion 2.1, February 1999", "LGPL-2.1-only"),
        ("GNU AFFERO GENERAL PUBLIC LICENSE\n  Version 3, 19 November 2007", "AGPL-3.0-only"),
        ("Boost Software License - Version 1.0 - August 17th, 2003", "BSL-1.0"),
        ("This is free and unencumbered software released into the public domain.", "Unlicense"),
        ("CC0 1.0 Universal", "CC0-1.0"),
        ("Creative Commons Attribution-ShareAlike 4.0 International", "CC-BY-SA-4.0"),
        ("Attribution-NonCommercial-NoDerivatives 4.0 International", "CC-BY-NC-ND-4.0"),
        ("PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2", "PSF-2.0"),
        ("// SPDX-License-Identifier: EUPL-1.2", "EUPL-1.2"),
        ("All rights reserved.", None),
        ("", None),
    ],
)
def test_texts_are_known_by_their_phrases(text: str, licence: str | None) -> None:
    assert licence_from_text(text) == licence


def test_the_licence_that_stands_first_is_the_files() -> None:
    """A GPL text ends by naming the Lesser GPL; bundled licences follow the project's own."""
    gpl = "GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\n"
    gpl += "… use the GNU Lesser General Public License, version 3, instead."
    assert licence_from_text(gpl) == "GPL-3.0-only"
    assert licence_from_text(f"{MIT}\n\nBundled code:\n{BSD_3}") == "MIT"


def test_the_texts_that_debian_ships_are_known() -> None:
    """Oracle: the folder of whole licence texts that Debian systems carry, by file name."""
    folder = Path("/usr/share/common-licenses")
    named = {
        "Apache-2.0": "Apache-2.0",
        "BSD": "BSD-3-Clause",
        "CC0-1.0": "CC0-1.0",
        "GFDL-1.3": "GFDL-1.3-only",
        "GPL-2": "GPL-2.0-only",
        "GPL-3": "GPL-3.0-only",
        "LGPL-2.1": "LGPL-2.1-only",
        "LGPL-3": "LGPL-3.0-only",
        "MPL-2.0": "MPL-2.0",
    }
    found = {name: folder / name for name in named if (folder / name).is_file()}
    if not found:
        pytest.skip("this system has no common-licenses")
    for name, path in found.items():
        assert licence_from_text(path.read_text(errors="replace")) == named[name], name


def test_installed_packages_agree_with_what_they_declare() -> None:
    """Oracle: the License-Expression of each installed distribution, against its licence file."""
    pairs = []
    for distribution in importlib.metadata.distributions():
        declared = next(iter(distribution.metadata.get_all("License-Expression") or ()), None)
        files = [
            file
            for file in distribution.files or ()
            if ".dist-info" in str(file) and is_licence_file(file.name)
        ]
        if declared and " " not in declared and len(files) == 1:
            text = Path(str(files[0].locate())).read_text(errors="replace")
            pairs.append((spdx_expression(declared), licence_from_text(text)))
    if len(pairs) < 20:
        pytest.skip("too few packages that declare a licence")
    agree = sum(declared == found for declared, found in pairs)
    assert agree >= 0.95 * len(pairs), [pair for pair in pairs if pair[0] != pair[1]]


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("#!/bin/sh\n# SPDX-License-Identifier: apache-2.0\n", "Apache-2.0"),
        ("/* SPDX-License-Identifier: GPL-2.0-or-later */", "GPL-2.0-or-later"),
        ("<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->", "MIT OR Apache-2.0"),
        ("// SPDX-License-Identifier: Nonsense-1.0", None),
        ("\n" * 50 + "// SPDX-License-Identifier: MIT", None),
        ("x" * 10_000 + "// SPDX-License-Identifier: MIT", None),
    ],
)
def test_the_tag_of_a_source_file(text: str, licence: str | None) -> None:
    assert licence_from_source(text) == licence


@pytest.mark.parametrize("value", ["(" * 199, "not MIT", "MIT or", "MIT\x00", "é", "a" * 5000, " "])
def test_what_is_no_expression_is_none(value: str) -> None:
    assert spdx_expression(value) is None


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("LICENSE", True),
        ("licence.md", True),
        ("COPYING.LESSER", True),
        ("LICENSE-MIT", True),
        ("MIT-LICENSE.txt", True),
        ("UNLICENSE", True),
        ("deep/folder/COPYING", True),
        ("license.py", False),
        ("licenses.json", False),
        ("LICENSES/", True),
        ("licensed.txt", False),
        ("README.md", False),
    ],
)
def test_licence_files_by_name(name: str, is_one: bool) -> None:
    assert is_licence_file(name) is is_one


def test_the_nearest_licence_above_wins() -> None:
    licences = {"": "MIT", "vendor/lib": "BSD-3-Clause"}
    assert nearest_licence("vendor/lib/src/a.c", licences) == "BSD-3-Clause"
    assert nearest_licence("vendor/other/a.c", licences) == "MIT"
    assert nearest_licence("a.c", licences) == "MIT"
    assert nearest_licence("vendor/libel/a.c", {"vendor/lib": "MIT"}) is None


@given(st.text(max_size=400))
def test_nothing_raises(text: str) -> None:
    licence_from_url(text)
    licence_from_text(text)
    licence_from_source(f"SPDX-License-Identifier: {text}")
    is_licence_file(text)
    nearest_licence(text, {"": "MIT"})
