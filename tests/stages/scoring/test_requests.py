from hypothesis import given, settings
from hypothesis import strategies as st

from stages.scoring.likelihood import Request, continuation_request, encode_text, rolling_requests


def test_white_space_at_the_end_of_a_prompt_moves_to_the_continuation(tokenizer):
    moved = continuation_request(tokenizer, "The capital is  ", "Paris", prefix=0)
    plain = continuation_request(tokenizer, "The capital is", "  Paris", prefix=0)
    assert moved == plain
    assert tokenizer.decode(list(moved.continuation)) == "  Paris"


def test_an_empty_prompt_is_scored_after_the_prefix(tokenizer):
    request = continuation_request(tokenizer, "", "Paris", prefix=7)
    assert request.context == (7,)
    assert list(request.continuation) == encode_text(tokenizer, "Paris")


def test_a_token_across_the_border_leaves_the_continuation_its_own_tokens(tokenizer):
    # Tokens are "dict" + "ionary" here, and "dict" + "ion": not a prefix of them.
    joined = encode_text(tokenizer, "dictionary")
    assert joined[: len(encode_text(tokenizer, "diction"))] != encode_text(tokenizer, "diction")
    request = continuation_request(tokenizer, "diction", "ary", prefix=0)
    assert tokenizer.decode(list(request.context[1:])) == "diction"
    assert tokenizer.decode(list(request.continuation)) == "ary"


def test_special_tokens_spelt_in_a_text_are_characters(tokenizer):
    ids = encode_text(tokenizer, "say <|im_end|>")
    assert min(ids) > 4
    assert tokenizer.decode(ids) == "say <|im_end|>"
    assert tokenizer.encode("<|im_end|>", add_special_tokens=False).ids == [4]


def test_rolling_windows_follow_lm_eval():
    # lm_eval/utils.py: prefix -100, tokens 0..9, windows of 4 with one token of context give
    # ([-100, 0, 1, 2], [0, 1, 2, 3]), ([3, 4, 5, 6], [4, 5, 6, 7]), ([5, 6, 7, 8], [8, 9]).
    assert rolling_requests([-100, *range(10)], 4) == [
        Request((-100,), (0, 1, 2, 3)),
        Request((3,), (4, 5, 6, 7)),
        Request((5, 6, 7), (8, 9)),
    ]


@settings(max_examples=60, deadline=None)
@given(length=st.integers(1, 60), context=st.integers(1, 20))
def test_rolling_windows_score_every_token_once_within_the_context(length, context):
    ids = list(range(length))
    requests = rolling_requests(ids, context)
    assert [token for request in requests for token in request.continuation] == ids[1:]
    for request in requests:
        joined = [*request.context, *request.continuation]
        assert joined == ids[joined[0] : joined[-1] + 1]
        assert len(joined) <= context + 1
