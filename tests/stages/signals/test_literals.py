"""Of many literals those that a text may hold: none that it holds is missed, others are left."""

from hypothesis import given
from hypothesis import strategies as st

from stages.signals.literals import Literals, find_pairs, fold_case

WORDS = ("*", "", "ghp_", "xoxb-", "password", "AKIA", "пароль", "\U0001f511é", "aaaa", "wJalrX")
LITERALS = Literals([word.encode() for word in WORDS])
LONG = "~" * 512
"""What makes a text one in which literals are chosen."""

CHARACTERS = st.text("*_-ghpxobasword AKIпарольé\U0001f511\ud800")


@given(st.lists(CHARACTERS | st.sampled_from(WORDS)).map("".join))
def test_every_literal_that_a_text_holds_is_chosen(text: str) -> None:
    chosen = LITERALS.choose(find_pairs((LONG + text).encode("utf-8", "surrogatepass")))
    assert {number for number, word in enumerate(WORDS) if word in text} <= set(chosen)


@given(st.lists(st.sampled_from(["AKIA", "PassWord", "GHP_", "\U0001f511"])).map("".join))
def test_folded_pairs_choose_what_the_text_in_small_letters_holds(text: str) -> None:
    small = ("akia", "password", "ghp_", "pa", "dg")
    pairs = fold_case(find_pairs((LONG + text).encode()))
    assert {number for number, word in enumerate(small) if word in text.lower()} <= set(
        Literals([word.encode() for word in small]).choose(pairs)
    )


def test_a_literal_with_a_pair_that_the_text_lacks_is_left() -> None:
    pairs = find_pairs(b"the password of Anna's account. " * 32)
    assert [WORDS[number] for number in LITERALS.choose(pairs)] == ["*", "", "password"]
    assert Literals(()).choose(pairs) == []


def test_a_short_text_is_searched_for_every_literal() -> None:
    assert list(LITERALS.choose(find_pairs(b"ghp_"))) == list(range(len(WORDS)))
