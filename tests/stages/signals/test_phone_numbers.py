"""Phone numbers: each way to write one, and the many numbers that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stages.signals.config import PHONE_REGIONS
from stages.signals.personal_data import find_personal_data


def phones(text: str, regions: tuple[str, ...] = ("US", "CA", "GB", "DE", "FR")) -> list[str]:
    spans = find_personal_data(text, regions)
    return [text[span.start : span.end] for span in spans if span.label == "phone"]


@pytest.mark.parametrize(
    "number",
    [
        "+49 4964 95816-120",
        "+44 (0) 20 7330 7500",
        "(+44) 20 7330 7500",
        "+1-800-221-9781",
        "+41 (0)71 222 28 18",
        "+7 (495) 797-69-70",
        "+374 (10) 58 54 27",
        "+33\u00a01\u00a084\u00a017\u00a061\u00a018",
        "+351229812220",
        "+43 1 36\u20110\u201126",
        "0049 30 227-32152",
    ],
)
@pytest.mark.parametrize("frame", ["{}", "at {}.", "T: {}\n", "<b>{}</b>", "or {}, or", "({})"])
def test_an_international_number_is_found_anywhere(number: str, frame: str) -> None:
    assert phones(frame.format(number), ()) == [number]


@pytest.mark.parametrize(
    ("number", "region"),
    [
        ("(212) 736-5000", "US"),
        ("212-736-5000", "US"),
        ("202.939.2231", "US"),
        ("1-866-305-4704", "US"),
        ("780-800-7092", "CA"),
        ("020 7330 7500", "GB"),
        ("07885 577 899", "GB"),
        ("0800 240 1020", "GB"),
        ("01 84 17 61 18", "FR"),
        ("01.84.17.61.18", "FR"),
        ("030 22751170", "DE"),
        ("0341/6962901", "DE"),
        ("(089) 1258-290", "DE"),
        ("(11) 99714-0849", "BR"),
        ("03-5978-7591", "JP"),
    ],
)
def test_a_national_number_is_found_where_its_country_is_asked_for(
    number: str, region: str
) -> None:
    text = f"see {number} or so"
    assert phones(text, (region,)) == [number]
    assert phones(text, ()) == []


@pytest.mark.parametrize(
    "label",
    [
        *("Tel.: ", "Tel ", "Phone:\n", "PHONE NUMBER - ", "Fax: ", "call me at ", "Mobile: "),
        *("Telefon: ", "Handynummer: ", "Téléphone : ", "Tél. ", "teléfono ", "телефон: ", "тел. "),
        *("電話番号 ", "电话:", "هاتف: ", "WhatsApp ", "dial ", "Rufnummer: "),
    ],
)
@pytest.mark.parametrize("number", ["467 3395", "72 128 827", "9498777106", "28210 91900"])
def test_a_word_that_names_it_is_enough(label: str, number: str) -> None:
    assert phones(label + number + "\n", ()) == [number]
    assert phones("x" + label[1:] + number if label[0].isascii() else number, ()) == []


def test_a_word_behind_names_it_too() -> None:
    assert phones("416 60 039 office\n930.167.3943 fax", ()) == ["416 60 039", "930.167.3943"]


def test_a_word_of_talking_lets_groups_of_the_plan_be_free() -> None:
    assert phones("they answer at 079 2718 1155", ("GB",)) == ["079 2718 1155"]
    assert phones("they stand at 079 2718 1155", ("GB",)) == []
    assert phones("they answer at 079 2718 1155", ("US",)) == []


def test_extensions_belong_to_the_number() -> None:
    assert phones("Desk: +1-903-240-4508x769") == ["+1-903-240-4508x769"]
    assert phones("(212) 736-5000 ext. 12, or") == ["(212) 736-5000 ext. 12"]


def test_two_numbers_in_a_row_are_two() -> None:
    text = "Tel. +49 711 289-88229 / +49 711 289-88230  +49 711 289-88231"
    assert phones(text) == ["+49 711 289-88229", "+49 711 289-88230", "+49 711 289-88231"]
    assert phones("Tel. 0 61 51 / 405 123\n") == ["0 61 51 / 405 123"]


def test_markup_around_a_number_hides_neither_it_nor_its_name() -> None:
    assert phones("Kontakt: **+49 711 28988229**") == ["+49 711 28988229"]
    assert phones("switchboard <b>3123/859128</b>, ask") == ["3123/859128"]
    assert phones("Tel.: `0711 28988229`") == ["0711 28988229"]
    assert phones("2**2025550143 and f(**4953112345)") == []


def test_digits_of_other_scripts_are_digits() -> None:
    """Full width (Japanese pages), Arabic, Persian, Devanagari, Bengali, Thai, Khmer, Burmese.

    The text keeps its places.
    """
    assert phones("電話 ０３－５９７８－７５９１まで") == ["０３－５９７８－７５９１"]
    assert phones("ＴＥＬ ＋８１－３－５９７８－７５９１ ") == ["＋８１－３－５９７８－７５９１"]
    assert phones("هاتف: ٠٢٢٣٣٤٤٥٥٦ ") == ["٠٢٢٣٣٤٤٥٥٦"]
    assert phones("फ़ोन: ०११ २३४५६७८९ ") == ["०११ २३४५६७८९"]
    assert phones("ফোন: ০১৭১১-২৩৪৫৬৭ ") == ["০১৭১১-২৩৪৫৬৭"]
    assert phones("โทร. ๐๒ ๑๒๓ ๔๕๖๗ ") == ["๐๒ ๑๒๓ ๔๕๖๗"]
    assert phones("Tel: ០២៣ ៤៥៦ ៧៨៩ ") == ["០២៣ ៤៥៦ ៧៨៩"]
    assert phones("Tel: ၀၁ ၂၃၄ ၅၆၇၈ ") == ["၀၁ ၂၃၄ ၅၆၇၈"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "on 2024-01-15 10:30",
            "15.01.2024 bis 31.12.2024",
            "1914-1918 and 1939–1945",
            "20240115",
        ),
        *(
            "version 1.2.3.4567",
            "v10.0.19041.1234",
            "3.14159265358979",
            "1 234 567 890",
            "0.0301234567",
        ),
        *("ISBN 978-3-16-148410-0", "ISBN 0-306-40615-2", "ISSN 0340-1855", "EAN 4006381333931"),
        *(
            "doi:10.1000/182",
            "arXiv:2112.11446",
            "48.8584, 2.2945",
            "52.5200 13.4050",
        ),
        *(
            "$212 736 5000",
            "€ 020 7330 7500",
            "212-736-5000%",
            "9fceb02d0ae598e95dc970b74767f19372d61af8",
        ),
        *(
            "x = 2127365000",
            "a[0301234567]",
            "id=212-736-5000",
            "order no. 212-736-5000",
            "f(1234567)",
        ),
        *(
            "2127365000",
            "0301234567",
            "555 1234",
            "(1) 2345678",
            "10 000 000",
            "1111111 11",
            "1e+12345678",
        ),
        *(
            "123-45-6789",
            "12345-6789",
            "1-2-3-4-5-6-7-8-9",
            "1 2 3 4 5 6 7 8 9 10 11 12",
            "0 0 0 0 0 0 0",
        ),
        *(
            "x+49301234567",
            "2+4412345678901",
            "+35236450.6",
            "/2020/07330-7500",
            "img-020-7330-7500.jpg",
        ),
        *("#212-736-5000", "020 7330 75000000", "Product Number: 030-39196067"),
        *(
            "call 3.1415926535",
            "context.quantize(35236450.6)",
            "+999 123 456 789",
            "(((((((",
            "+++++++",
        ),
    ],
)
def test_what_is_no_phone_number_is_left(text: str) -> None:
    assert phones(text) == []


QUIET = ("en-fiction", "en-classics", "en-textbooks", "wikitext2-valid", "parallel-xquad", "udhr")
WIKIPEDIAS = ("ar", "de", "es", "fr", "hi", "ja", "ru", "zh")


def test_books_encyclopedias_and_code_have_none(shared_data: Path) -> None:
    """58 MB in fifteen files: one number is a phone number, that of a help line in a textbook."""
    import zstandard

    names = [f"text/{name}" for name in (*QUIET[2:], *WIKIPEDIAS)] + ["code/python-stdlib"]
    found = []
    for name in names:
        with zstandard.open(shared_data / f"{name}.jsonl.zst", "rt") as lines:
            texts = [json.loads(line)["text"] for line in lines]
        found += [
            (name, span.label, text[span.start : span.end])
            for text in texts
            for span in find_personal_data(text)
            if span.label in ("phone", "iban", "card")
        ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    ["call on 15.01.2024", "Telefon 2024-01-15", "phone: 1939 – 1945", "fax 01/15 - 02/22 (17"],
)
def test_a_date_is_none_even_behind_a_word_that_names_numbers(text: str) -> None:
    assert phones(text) == []


def test_fewer_than_nine_digits_need_a_name() -> None:
    """0900-0130 is a time of day in a word problem."""
    assert phones("earlier than 0900 i.e. 0900-0130 = 0730", ("AT", "IE", "GB", "DE")) == []
    assert phones("(0341) 6962", ("DE",)) == []
    assert phones("Tel. (0341) 6962", ("DE",)) == ["(0341) 6962"]


def test_a_word_of_talking_does_not_reach_over_another_value() -> None:
    """So that what replaces the value, longer or shorter, changes nothing."""
    assert phones("answer a@b.com or 079 2718 1155", ("GB",)) == []
    assert phones("answer <EMAIL> or 079 2718 1155", ("GB",)) == []
    assert phones("answer us or them at 079 2718 1155", ("GB",)) == ["079 2718 1155"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Tlf. ⟦41 23 87 65⟧",
            "Puh. ⟦040 812 3456⟧",
            "Sími: ⟦581 2345⟧",
            "nr tel. ⟦22 812 45 33⟧",
        ),
        *("Telefonszám: ⟦06-1-312-4478⟧", "Cep telefonu: ⟦0532 441 87 23⟧", "נייד ⟦052-344-8712⟧"),
        *("手机号码：⟦13812349678⟧", "携帯：⟦090-8123-4471⟧", "연락처 ⟦010-8123-4471⟧"),
        *("SĐT: ⟦0912 344 871⟧", "โทร. ⟦02-234-8712⟧", "☎ ⟦0161 344 8712⟧", "Κιν.: ⟦6944 123 778⟧"),
        *('"mobile":"⟦9812344718⟧"', "Ring oss på ⟦22 84 15 60⟧", "Mon numéro : ⟦07 81 23 45 99⟧"),
    ],
)
def test_names_of_many_languages_need_no_plan(text: str) -> None:
    plain = text.replace("⟦", "").replace("⟧", "")
    assert phones(plain, ("NO", "FR")) == [text[text.index("⟦") + 1 : text.index("⟧")]]


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("请拨打⟦400-812-7733⟧咨询", "CN"),
        ("お電話は⟦03-3512-8871⟧まで", "JP"),
        ("Bei Fragen einfach ⟦0664 8812345⟧ anrufen", "AT"),
        ("मुझे ⟦98123 44718⟧ पर कॉल करें", "IN"),
        ("Zadzwoń: ⟦512 884 973⟧", "PL"),
    ],
)
def test_words_of_calling_stand_before_or_after(text: str, region: str) -> None:
    plain = text.replace("⟦", "").replace("⟧", "")
    assert phones(plain, (region,)) == [text[text.index("⟦") + 1 : text.index("⟧")]]


def test_the_head_of_a_column_names_the_numbers_below_it() -> None:
    rows = "".join(f"| Ann | 415344871{n} | room {n} |\n" for n in range(3))
    assert phones(f"| Name | Phone | Place |\n|---|---|---|\n{rows}", ()) == [
        f"415344871{n}" for n in range(3)
    ]
    assert phones(f"| Name | Code | Place |\n|---|---|---|\n{rows}", ()) == []
    assert phones("Name\tTelefon\nAnn\t8815523\n", ()) == ["8815523"]
    copied = "COPY people (id, name, phone, made) FROM stdin;\n"
    rows = "1\tEva\t22 831 64 57\tx\n2\tJan\t605632240\ty\n"
    assert phones(copied + rows, ()) == ["22 831 64 57", "605632240"]
    assert phones(copied.replace("phone", "serial") + rows, ()) == []
    apart = "Name      Phone\nEva       8315523\nJan       6056322\n"
    assert phones(apart, ()) == ["8315523", "6056322"]
    assert phones(apart.replace("Phone", "Count"), ()) == []


def test_one_name_serves_several_numbers() -> None:
    assert phones("Teléfonos: 7881-2353 y 7881-1464 o 7881-1465", ()) == [
        *("7881-2353", "7881-1464", "7881-1465")
    ]
    assert phones("Teléfonos: 7881-2353, pedido 7881-1464", ()) == ["7881-2353"]


@pytest.mark.parametrize(
    "behind",
    [
        *("und 12345678 Besucher", "or visit 12 345 678 pages", ", Konto 532 013 000"),
        *("and about 1200000 users", ", Seite 04 123 456", "\nRegister Zurich Nord 620 303 118"),
        *("\nMWST Nummer der Firma 108 954 978", ", ABN 12 345 678 901", ", IČO 45 274 649"),
    ],
)
def test_a_number_behind_a_telephone_s_is_another_where_it_counts_or_is_named(behind: str) -> None:
    assert phones(f"Tel. 044 668 18 09 {behind}", PHONE_REGIONS) == ["044 668 18 09"]


@pytest.mark.parametrize("blank", ["\u2007", "\u2009", "\u202f", "\u00a0"])
def test_blanks_of_typesetters_part_groups(blank: str) -> None:
    number = "+65 6125 8477".replace(" ", blank)
    assert phones(f"I am available at {number} most evenings.", ()) == [number]


@pytest.mark.parametrize(
    "text",
    [
        *("CEP 35590-000", "CA 94103-1234", "pedido nº 612 345 987", "注文番号：090-8123-4471"),
        *("заказ № 8 916 334 78 12", "VAT GB 123 4567 89", "ABN 12 345 678 901", "01 02 03 04 05"),
        *("callback(13577625587)", "IEEE standard 854-1987", "a slash of .217/.260/.300 helps"),
        *("mobile users reached 12 345 678", "Rückfragen zu Rechnung 0815-2023-4711"),
        *("Call us about invoice 0161 344 8712", "tel aviv 1234567 sqm", "Year Book, 1851-270"),
    ],
)
def test_numbers_with_another_name_are_left(text: str) -> None:
    assert phones(text, PHONE_REGIONS) == []
