"""Of many literals those that a text may hold: none that it holds is missed, others are left."""

from hypothesis import given
from hypothesis import strategies as st

from stages.signals.literals import Literals, find_triples

WORDS = ("*", "", "ghp_", "xoxb-", "password", "AKIA", "пароль", "\U0001f511é", "aaaa", "wJalrX")
LITERALS = Literals([word.encode() for word in WORDS])
LONG = "~" * 512
"""What makes a text one in which literals are chosen."""

CHARACTERS = st.text("*_-ghpxobasword AKIпарольé\U0001f511\ud800")


@given(st.lists(CHARACTERS | st.sampled_from(WORDS)).map("".join))
def test_every_literal_that_a_text_holds_is_chosen(text: str) -> None:
    chosen = LITERALS.choose(find_triples((LONG + text).encode("utf-8", "surrogatepass")))
    assert {number for number, word in enumerate(WORDS) if word in text} <= set(chosen)


def test_a_literal_with_a_triple_that_the_text_lacks_is_left() -> None:
    triples = find_triples(b"the password of Anna's account. " * 32)
    assert [WORDS[number] for number in LITERALS.choose(triples)] == ["*", "", "password"]
    assert Literals(()).choose(triples) == []


def test_capitals_are_no_small_letters() -> None:
    triples = find_triples(b"PASSWORD of Anna's account, and more words. " * 32)
    assert [WORDS[number] for number in LITERALS.choose(triples)] == ["*", ""]


def test_a_short_text_is_searched_for_every_literal() -> None:
    assert list(LITERALS.choose(find_triples(b"ghp_"))) == list(range(len(WORDS)))
