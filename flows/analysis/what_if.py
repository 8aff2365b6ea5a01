"""Another decision about the documents of a corpus, in memory: the rules, a change, or a sweep.

`--set` and `--sweep` name thresholds by rule and other values by their path in the config.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import UsageError
from flows.analysis.corpus import Corpus, TokenCounts, count_tokens
from flows.recipe.notation import set_value
from stages.filter.checks import CONTAMINATION, NEAR_DUPLICATE
from stages.filter.config import FilterConfig
from stages.filter.presets import PRESETS
from stages.filter.verdicts import Verdicts

MAX_SWEEP_VALUES = 100
"""Of a sweep: each is a decision about all documents."""
EXCERPT = 160
"""Characters of a sample."""

Bools = NDArray[np.bool_]


# Settings -----------------------------------------------------------------------------------------


def setting_path(text: str) -> str:
    """`RULE=VALUE` or `path=value` as a path of the config: a rule is a key of `thresholds`.

    `filter.` may precede it, as in a run of the recipe.
    """
    text = text.strip().removeprefix("filter.")
    path, equals, _ = text.partition("=")
    is_field = not equals or path.strip().split(".")[0] in FilterConfig.model_fields
    return text if is_field else f"thresholds.{text}"


def apply_settings(config: FilterConfig, settings: Sequence[str]) -> FilterConfig:
    """`config` with every `RULE=VALUE` or `path=value` set; UsageError for an invalid one."""
    values: dict[str, Any] = config.plain()
    for text in settings:
        set_value(values, setting_path(text))
    where = " ".join(f"--set {text}" for text in settings) or "config"
    try:
        return FilterConfig.parse(values, where=where)
    except UsageError as error:
        raise UsageError(
            error.what, where=where, hint=_suggest_setting(error.what, settings)
        ) from None


def _suggest_setting(what: str, settings: Sequence[str]) -> str | None:
    """What to do about a rule that no chosen preset has."""
    for text in settings:
        name = text.partition("=")[0].strip()
        presets = [
            preset for preset, rules in PRESETS.items() if any(r.name == name for r in rules)
        ]
        if presets and f"'{name}'" in what:
            return f"it is a rule of {', '.join(presets[:3])}: choose that with --set 'rules=[…]'"
    if "no chosen preset has a rule" in what and any(s.startswith("rules") for s in settings):
        return "the config has thresholds of the old rules: add --set 'thresholds={}'"
    return None


def parse_sweep(text: str) -> tuple[str, list[float]]:
    """`RULE=A:B:N` as the rule (or path) and its N values; whole numbers stay whole."""
    name, equals, span = text.partition("=")
    where = f"--sweep {text}"
    try:
        first, last, number = span.split(":")
        start, stop, count = float(first), float(last), int(number)
    except ValueError:
        raise UsageError(
            "expected RULE=A:B:N, e.g. gopher_few_words=10:100:10", where=where
        ) from None
    if not equals or not name.strip() or not 2 <= count <= MAX_SWEEP_VALUES:
        raise UsageError(f"expected RULE=A:B:N with N from 2 to {MAX_SWEEP_VALUES}", where=where)
    values = [start + (stop - start) * place / (count - 1) for place in range(count)]
    return name.strip(), [round(value, 10) for value in values]


def read_thresholds(config: FilterConfig) -> dict[str, float]:
    """The threshold of each check that has the same one for all documents."""
    thresholds = {
        rule.name: rule.threshold
        for rule in config.rule_order()
        if not rule.allowed and not np.isnan(rule.threshold)
    }
    thresholds[CONTAMINATION] = float(config.contamination.min_ngrams_hit)
    if config.duplicates.threshold is not None:
        thresholds[NEAR_DUPLICATE] = config.duplicates.threshold
    return thresholds


# A changed decision -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Amount:
    """Documents with their characters and tokens; tokens are None where no tokenizer read them."""

    documents: int
    characters: int
    tokens: int | None = None


class Retention(NamedTuple):
    """A source (or `all`): its documents, those kept before, those kept after."""

    source: str
    total: Amount
    before: Amount
    after: Amount

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "source": self.source,
            "of": asdict(self.total),
            "before": asdict(self.before),
            "after": asdict(self.after),
        }


@dataclass(frozen=True)
class RuleEffect:
    """Documents that one rule gains or loses: their values, and its threshold before and after."""

    reason: str
    documents: int
    characters: int
    least: float | None
    most: float | None
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Sample:
    """One document that was gained or lost, and the rule that drops it."""

    doc_id: str
    source: str
    url: str | None
    rule: str
    value: float | None
    text: str

    def to_json(self) -> dict[str, Any]:
        """As plain values, with an excerpt of the text."""
        values = asdict(self)
        return {**values, "excerpt": values.pop("text")[:EXCERPT]}


class DocumentSizes(NamedTuple):
    """[documents] Quantities that are summed over documents."""

    characters: NDArray[np.int64]
    tokens: NDArray[np.float64] | None

    def sum(self, chosen: Bools) -> Amount:
        """The sums over some documents."""
        tokens = None if self.tokens is None else round(float(self.tokens[chosen].sum()))
        return Amount(int(chosen.sum()), int(self.characters[chosen].sum()), tokens)


@dataclass(frozen=True, eq=False)
class DecisionChange:
    """The decisions `before` and `after`, and the configs that made them."""

    before: Verdicts
    after: Verdicts
    configs: tuple[FilterConfig, FilterConfig]
    sizes: DocumentSizes

    @property
    def gained(self) -> Bools:
        """[documents] Dropped before, kept after."""
        return ~self.before.kept & self.after.kept

    @property
    def lost(self) -> Bools:
        """[documents] Kept before, dropped after."""
        return self.before.kept & ~self.after.kept

    def retention(self) -> Iterator[Retention]:
        """All documents, then each source, sorted."""
        kept = self.before.kept, self.after.kept
        everything = np.ones(len(kept[0]), dtype=bool)
        sources = self.before.sources
        masks = [("all", everything)]
        for source in sorted(pc.unique(sources).to_pylist()):
            masks.append((source, pc.equal(sources, source).to_numpy(zero_copy_only=False)))
        for source, mask in masks:
            before, after = (self.sizes.sum(mask & one) for one in kept)
            yield Retention(source, self.sizes.sum(mask), before, after)

    def effect_on(self, row: int) -> RuleEffect:
        """Why one document that was gained or lost is dropped, before or after."""
        chosen = np.zeros(len(self.gained), dtype=bool)
        chosen[row] = True
        return self.effects(chosen)[0]

    def effects(self, chosen: Bools) -> list[RuleEffect]:
        """Documents that were all gained or all lost, by the rule that drops them, most first."""
        verdicts = self.before if (chosen & self.gained).any() else self.after
        before, after = (read_thresholds(config) for config in self.configs)
        effects = []
        for code in np.unique(verdicts.first[chosen]).tolist():
            rows = chosen & (verdicts.first == code)
            values = verdicts.findings.value[rows]
            values = values[~np.isnan(values)]
            name = verdicts.names[code]
            effects.append(
                RuleEffect(
                    reason=name,
                    documents=int(rows.sum()),
                    characters=int(self.sizes.characters[rows].sum()),
                    least=float(values.min()) if len(values) else None,
                    most=float(values.max()) if len(values) else None,
                    before=before.get(name),
                    after=after.get(name),
                )
            )
        return sorted(effects, key=lambda effect: (-effect.documents, effect.reason))


def _count_failures(verdicts: Verdicts) -> Iterator[tuple[str, int, int]]:
    """Each check, how many documents fail it, and how many fail nothing else."""
    findings, names = verdicts.findings, verdicts.names
    failing = np.bincount(findings.codes, minlength=len(names))
    single = np.flatnonzero(np.diff(findings.offsets) == 1)
    alone = np.bincount(findings.codes[findings.offsets[single]], minlength=len(names))
    return zip(names, failing.tolist(), alone.tolist(), strict=True)


# Reports ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WhatIfRequest:
    """A corpus, and the config to decide by instead of its own."""

    corpus: Corpus
    config: FilterConfig
    settings: tuple[str, ...] = ()

    @classmethod
    def make(cls, corpus: Corpus, settings: tuple[str, ...]) -> WhatIfRequest:
        """The corpus's own config with `settings` applied; UsageError for an invalid one."""
        return cls(corpus, apply_settings(corpus.config, settings), settings)

    @cached_property
    def before(self) -> Verdicts:
        """The decision of the corpus's own config."""
        return self.corpus.decide(self.corpus.config)

    @cached_property
    def tokens(self) -> TokenCounts | None:
        """Tokens of each document, where a tokenizer read the corpus."""
        return count_tokens(self.corpus, self.before)

    @cached_property
    def sizes(self) -> DocumentSizes:
        """Characters and tokens of each document."""
        tokens = None if self.tokens is None else self.tokens.tokens
        return DocumentSizes(self.corpus.characters, tokens)

    @property
    def deviations(self) -> int:
        """Documents that this program decides differently from the ledger."""
        return int((self.before.kept != self.corpus.was_kept).sum())

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        manifest = self.corpus.manifest
        return {
            "corpus": {"stage": manifest.stage, "key": manifest.key},
            "settings": list(self.settings),
            "tokens": self.tokens and self.tokens.origin,
            "decided_otherwise": self.deviations,
        }


class RulesReport:
    """The checks of a corpus, and how many documents fail each."""

    decisions = 1
    """How often every document was decided."""

    def __init__(self, request: WhatIfRequest) -> None:
        self.request = request
        rules = {rule.name: rule.passes for rule in request.config.rule_order()}
        thresholds = read_thresholds(request.config)
        self.rows = [
            {
                "rule": name,
                "stays": rules.get(name, ""),
                "threshold": thresholds.get(name),
                "failing": failing,
                "failing_alone": alone,
            }
            for name, failing, alone in _count_failures(request.before)
        ]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**self.request.to_json(), "rules": self.rows}


class ChangeReport:
    """What a changed config keeps, by source; what it gains and loses, by rule, with samples."""

    decisions = 2

    def __init__(self, request: WhatIfRequest, samples: int) -> None:
        self.request = request
        after = request.corpus.decide(request.config)
        configs = request.corpus.config, request.config
        self.change = DecisionChange(request.before, after, configs, request.sizes)
        self.total, *self.by_source = self.change.retention()
        self.chosen = {"gained": self.change.gained, "lost": self.change.lost}
        self.effects = {way: self.change.effects(rows) for way, rows in self.chosen.items()}
        rows = {way: self._sample_rows(chosen, samples) for way, chosen in self.chosen.items()}
        doc_ids = [doc_id for by_id in rows.values() for doc_id in by_id]
        texts = request.corpus.texts(doc_ids) if doc_ids else {}
        self.samples = {
            way: [self._sample(row, doc_id, texts[doc_id]) for doc_id, row in by_id.items()]
            for way, by_id in rows.items()
        }

    def _sample_rows(self, chosen: Bools, most: int) -> dict[str, int]:
        """The chosen documents with the least ids: an even sample, the same each time."""
        ids, rows = self.request.before.doc_ids, np.flatnonzero(chosen)
        order = pc.sort_indices(ids.take(pa.array(rows))).to_numpy()[:most]
        return {ids[row].as_py(): row for row in rows[order].tolist()}

    def _sample(self, row: int, doc_id: str, document: Mapping[str, Any]) -> Sample:
        effect = self.change.effect_on(row)
        source, url, text = (document[name] for name in ("source", "url", "text"))
        return Sample(doc_id, source, url, effect.reason, effect.least, text)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            **self.request.to_json(),
            "retention": [retention.to_json() for retention in (self.total, *self.by_source)],
            **{
                way: {
                    **asdict(self.change.sizes.sum(chosen)),
                    "by_rule": [asdict(effect) for effect in self.effects[way]],
                    "samples": [sample.to_json() for sample in self.samples[way]],
                }
                for way, chosen in self.chosen.items()
            },
        }


class SweepReport:
    """What each of several values of one threshold keeps; `sweep` is RULE=A:B:N."""

    def __init__(self, request: WhatIfRequest, sweep: str) -> None:
        self.request = request
        self.name, values = parse_sweep(sweep)
        self.decisions = 1 + len(values)
        self.threshold = read_thresholds(request.config).get(self.name)
        self.documents = len(request.before.kept)
        self.rows: list[tuple[float, Amount]] = []
        for value in values:
            settings = (*request.settings, f"{self.name}={value:.10g}")
            config = apply_settings(request.corpus.config, settings)
            kept = request.corpus.decide(config).kept
            self.rows.append((value, request.sizes.sum(kept)))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        sweep = {
            "of": self.name,
            "now": self.threshold,
            "documents": self.documents,
            "points": [{"value": value, **asdict(kept)} for value, kept in self.rows],
        }
        return {**self.request.to_json(), "sweep": sweep}


WhatIfReport = RulesReport | ChangeReport | SweepReport
