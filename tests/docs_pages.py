"""Reading the pages of docs/: their blocks, command lines, links and headings."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
_FENCE = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the file that it is, if it is one."""

    page: Path
    language: str
    text: str
    file: str | None


def blocks(page: Path, *languages: str) -> list[Block]:
    """The fenced blocks of a page in these languages, or all of them."""
    found = [
        Block(page, match["language"], match["text"], match["file"])
        for match in _FENCE.finditer(page.read_text(encoding="utf-8"))
    ]
    return [block for block in found if not languages or block.language in languages]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def commands(page: Path) -> list[list[str]]:
    """Every command line of a page's `sh` blocks, and behind `$` of its `console` blocks."""
    joined = [block.text.replace("\\\n", " ") for block in blocks(page, "sh")]
    lines = [line for text in joined for line in text.splitlines()]
    for block in blocks(page, "console"):
        lines += [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def ingot_commands(page: Path) -> list[list[str]]:
    """The arguments of every `ingot` of a page, also of one in `NAME=$(ingot …)`."""
    found = []
    for words in commands(page):
        text = shlex.join(words)
        if nested := re.search(r"\$\((ingot [^)]*)\)", " ".join(words)):
            words = shlex.split(nested[1])
        if words[0] == "ingot":
            found.append(words[1:])
        else:
            assert "ingot " not in text or words[0] in ("pip", "git"), text
    return found


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    found: dict[str, int] = {}
    result = set()
    for title in re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        result.add(f"{slug}-{count}" if count else slug)
    return result


def links(page: Path) -> list[str]:
    """Targets of the links and pictures of a page."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))
