"""Objectives over whole rows: shares, draws, what they ask of a tokenizer, and no leaks."""

import numpy as np
import pytest
import torch

from artifacts_schema.errors import UsageError
from stages.model.config import ModelShape
from stages.model.decoder import Decoder
from stages.pretrain.config import ObjectiveConfig
from stages.pretrain.objectives import Objective, ReservedTokens, Vocabulary
from stages.tokenizer.training import train, transformers_config
from stages.training.rows import Rows
from stages.training.token_shards import IGNORED, cut_into_segments

END, PAD, MASK = 1, 2, 3
TEXT = np.arange(64) >= 20
LENGTH = 48
NAMES = ("causal", "masked", "prefix", "span_corruption")
MIXED = [{"name": name, "share": 0.25} for name in NAMES]


def vocabulary(mask=MASK, sentinels=16):
    return Vocabulary(END, PAD, ReservedTokens(mask, tuple(range(4, 4 + sentinels))), TEXT)


def objective(*parts, seed=5, **given):
    config = ObjectiveConfig.parse({"parts": list(parts)}, where="objective")
    return Objective(config, seed, vocabulary(**given), LENGTH)


def rows_of(batch=12, seed=0):
    """Packed rows of documents of 3 to 30 tokens, padded at the right."""
    draw = np.random.default_rng(seed)
    raw = np.full((batch, LENGTH), PAD, dtype=np.uint16)
    for row in raw:
        start = 0
        while (length := int(draw.integers(3, 30))) <= LENGTH - start:
            row[start : start + length - 1] = draw.integers(20, 64, length - 1)
            row[start + length - 1] = END
            start += length
    return Rows(raw.astype(np.int32), *cut_into_segments(raw, END, PAD))


def same(one, other):
    names = ("tokens_BL", "targets_BL", "documents_BL", "prefix_BL")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def test_the_causal_objective_leaves_rows_as_they_are():
    rows = rows_of()
    assert Objective(ObjectiveConfig()).rows(rows, 1) is rows


@pytest.mark.parametrize("parts", [*([{"name": name}] for name in NAMES[1:]), MIXED])
def test_rows_depend_on_seed_step_and_number_of_the_row_alone(parts):
    """So a resumed run, other micro-batches and other numbers of ranks learn from the same."""
    rows = rows_of()
    whole = objective(*parts).rows(rows, 7)
    assert same(objective(*parts).rows(rows, 7), whole)
    first = 0
    for part, expected in zip(rows.split(5), whole.split(5), strict=True):
        assert same(objective(*parts).rows(part, 7, first), expected)
        first += len(part)
    assert not same(objective(*parts).rows(rows, 8), whole)
    assert not same(objective(*parts, seed=6).rows(rows, 7), whole)


@pytest.mark.parametrize("name", NAMES[1:])
def test_what_was_packed_stays_untouched(name):
    rows, again = rows_of(), rows_of()
    objective({"name": name}).rows(rows, 1)
    assert same(rows, again)


@pytest.mark.parametrize("name", NAMES[1:])
def test_no_target_is_seen_by_what_predicts_it(name):
    """Another token in the place of one moves no loss before it, but for those that may see it:
    the prefix. A target itself is nowhere in what its own position sees.
    """
    mixed = ({"name": name, "share": 0.5}, {"name": "causal", "share": 0.5})
    rows = objective(*mixed).rows(rows_of(), 3)
    if name == "masked":
        hidden = rows.tokens_BL == MASK
        assert hidden.any()
        assert (rows.targets_BL[hidden] >= 20).all()
        return
    model = Decoder(
        ModelShape(width=16, layers=1, heads=2, kv_heads=1, context=LENGTH).with_vocabulary(64)
    )

    def logits(tokens_BL):
        with torch.no_grad():
            return model(
                torch.from_numpy(tokens_BL),
                documents_BL=torch.from_numpy(rows.documents_BL),
                prefix_BL=torch.from_numpy(rows.prefix_BL),
            ).numpy()

    before = logits(rows.tokens_BL)
    for place in range(4, LENGTH, 5):
        changed = rows.tokens_BL.copy()
        free = ~rows.prefix_BL[:, place]
        changed[:, place] = np.where(free, (changed[:, place] + 1) % 64, changed[:, place])
        moved = np.abs(logits(changed) - before).max(axis=2) > 0
        assert not moved[:, :place].any()
        assert moved[free, place].all()


def test_masked_rows_are_seen_whole_but_for_padding_even_where_that_counts_as_text():
    config = ObjectiveConfig.parse({"parts": [{"name": "masked"}]}, where="objective")
    given = Vocabulary(END, PAD, ReservedTokens(MASK, ()), TEXT | (np.arange(64) == PAD))
    rows = Objective(config, 5, given, LENGTH).rows(rows_of(), 1)
    assert np.array_equal(rows.prefix_BL, rows.documents_BL != -1)
    assert (rows.targets_BL[~rows.prefix_BL] == IGNORED).all()
    assert (rows.tokens_BL[~rows.prefix_BL] == PAD).all()


def test_each_part_of_a_mixture_has_its_share_of_the_sequences():
    """What a row has tells its objective: sentinels, mask tokens, a prefix, or none of these."""
    shares = {"causal": 0.4, "masked": 0.1, "prefix": 0.3, "span_corruption": 0.2}
    mixed = objective(*({"name": name, "share": share} for name, share in shares.items()))
    rows = mixed.rows(rows_of(batch=400), 11)
    spans = ((rows.tokens_BL >= 4) & (rows.tokens_BL < 20)).any(axis=1)
    full = (rows.prefix_BL == (rows.documents_BL != -1)).all(axis=1)
    prefix = rows.prefix_BL.any(axis=1) & ~full & ~spans
    found = [(~rows.prefix_BL.any(axis=1)).sum(), full.sum(), prefix.sum(), spans.sum()]
    assert found == pytest.approx([400 * share for share in shares.values()], abs=3)
    causal = ~rows.prefix_BL.any(axis=1)
    assert np.array_equal(rows.tokens_BL[causal], rows_of(batch=400).tokens_BL[causal])


def test_one_kind_of_objective_may_stand_twice_as_in_ul2():
    """UL2 (Tay et al. 2022, arXiv 2205.05131): short and long spans side by side."""
    parts = (
        {"name": "span_corruption", "share": 0.5},
        {"name": "span_corruption", "share": 0.5, "corrupted": 0.5, "mean_span": 12},
    )
    rows = objective(*parts).rows(rows_of(batch=100), 1)
    learnt = (rows.targets_BL != IGNORED).sum(axis=1) / (rows.documents_BL != -1).sum(axis=1)
    assert ((learnt > 0.1) & (learnt < 0.45)).sum() == pytest.approx(50, abs=8)
    assert (learnt > 0.45).sum() == pytest.approx(50, abs=8)


@pytest.mark.parametrize(
    ("part", "given", "needed"),
    [
        ({"name": "masked"}, {"mask": None, "sentinels": 0}, "1 reserved tokens .* has 0"),
        # 42 tokens and 6 of noise in 2 spans; then the mask token.
        ({"name": "span_corruption"}, {"sentinels": 1}, "3 reserved tokens .* has 2"),
    ],
)
def test_a_tokenizer_with_too_few_reserved_tokens_is_refused(part, given, needed):
    with pytest.raises(UsageError, match=rf"objective\.parts\.0: .* needs {needed}.*reserved_tok"):
        objective(part, **given)


def test_reserved_tokens_of_a_trained_tokenizer_are_found():
    """Ids 0 to 7 have roles, then eight reserved ones: a mask token and seven sentinels."""
    tokenizer = train(
        iter(["a text"] * 3), vocabulary_size=300, pre_tokenizer="llama-bpe", min_frequency=1
    )
    found = ReservedTokens.from_tokenizer(tokenizer, transformers_config("llama-bpe"))
    assert found == ReservedTokens(8, tuple(range(9, 16)))


@pytest.mark.parametrize(
    ("names", "config", "mask", "sentinels"),
    [
        (["<|reserved_special_token_1|>", "<|reserved_special_token_0|>"], {}, 1, [0]),
        (["<extra_id_10>", "<extra_id_9>", "</s>"], {}, 1, [0]),
        (["[MASK]", "<unused0>", "<unused1>"], {"mask_token": "[MASK]"}, 0, [1, 2]),
        (["<|extra_0|>"], {"mask_token": {"content": "<|extra_0|>"}}, 0, []),
        (["<|im_start|>"], {}, None, []),
    ],
)
def test_reserved_tokens_of_other_tokenizers_are_found(names, config, mask, sentinels):
    """In the order of their numbers; the mask token is the one that the tokenizer names."""
    from tokenizers import AddedToken, Tokenizer, models

    tokenizer = Tokenizer(models.BPE())
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in names])
    assert ReservedTokens.from_tokenizer(tokenizer, config) == ReservedTokens(
        mask, tuple(sentinels)
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"parts": [{"name": "masked", "share": 0.5}]}, "sum to 0.5, not to 1"),
        ({"parts": [{"mean_span": 4}]}, "mean_span is set, but causal does not read it"),
        ({"parts": [{"name": "prefix", "corrupted": 0.5}]}, "corrupted is set, but prefix"),
        ({"parts": [{"name": "masked", "masked": 0.95}]}, "sum to 1.05, above 1"),
        ({"parts": [{"name": "mask"}]}, "'causal', 'masked'"),
        ({"z_loss": -1}, "z_loss: input should be greater than or equal to 0"),
    ],
)
def test_a_wrong_objective_is_refused(config, message):
    with pytest.raises(UsageError, match=message):
        ObjectiveConfig.parse(config, where="objective")


def test_the_default_bears_no_identity():
    same = ObjectiveConfig.parse({"parts": [{"name": "causal", "share": 1.0}]}, where="")
    assert same.identity() == ObjectiveConfig().identity() == {}
