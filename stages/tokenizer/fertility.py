"""How finely a tokenizer cuts documents that it was not trained on, by source."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer

from stages.text.fertility import Cutter, Fertility, batches
from stages.text.unicode_words import unicode_words

__all__ = ["Fertility", "fertility_by_source"]


def fertility_by_source(
    tokenizer: Tokenizer, documents: Iterable[tuple[str, str]]
) -> dict[str, Fertility]:
    """Measure (source, text) pairs; sources in sorted order. Special tokens in a text are text."""
    cutter = Cutter.of(tokenizer.to_str())
    sums: dict[str, Fertility] = {}
    for batch in batches(documents, text=lambda pair: pair[1]):
        texts = [text for _, text in batch]
        cuts = cutter.cut(texts, unicode_words(texts))
        for (source, _), measured in zip(batch, cuts.sums, strict=True):
            sums.setdefault(source, Fertility()).add(measured)
    return dict(sorted(sums.items()))
