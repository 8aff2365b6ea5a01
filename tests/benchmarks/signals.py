"""How fast texts are measured and judged, beside datatrove's chain of four filters.

    python -m tests.benchmarks.signals [--peers PYTHON] [--documents 2000] [--rounds 3]

Documents are pieces of the public English prose of `../shared/data`, each there once, of about 360
words. Every work runs in fresh processes, in turn, one thread each; what counts is their CPU time,
cold: no memo of an earlier round helps. A rate counts from the first document to the last verdict.
`start` is what comes before it: imports, models, compiled code from its cache, a first short text;
`whole` is the rate with that.

datatrove     Gopher repetition, Gopher quality, C4 without terminal punctuation, FineWeb
chain, spaCy  the same rules on the same words; the first failing rule must be the same everywhere
chain         the same rules on the words of the default splitter
every signal  all groups and views, language by document and by line, bad words, perplexity by line
              and text with an n-gram model that was estimated before, with the table of spans
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.peers.corpus import DATA, SOURCES, read

PEER = "datatrove"
CHAINS = {"chain, spaCy": "spacy_english", "chain": "unicode"}
EVERY = "every signal"
PRESET = "fineweb_chain@datatrove"
WARM = "A first text, so that compiled code is read from its cache.\nIt has two lines."


def pieces(count: int, seed: int = 0) -> list[str]:
    """Different pieces of prose, whole lines, half of them longer than about 360 words."""
    found = [piece for name in SOURCES for text in _texts(name) for piece in _cut(text)]
    random.Random(seed).shuffle(found)
    return list(dict.fromkeys(found))[:count]


def _texts(name: str) -> Iterator[str]:
    return (row["text"] for row in read(DATA / f"{name}.jsonl.zst"))


def _cut(text: str) -> Iterator[str]:
    """`text` in pieces one after the other; its length draws theirs."""
    rng = random.Random(len(text))
    wanted, lines, words = rng.lognormvariate(5.8, 0.6), list[str](), 0
    for line in text.split("\n"):
        lines.append(line)
        words += len(line.split())
        if words >= wanted:
            yield "\n".join(lines)
            wanted, lines, words = rng.lognormvariate(5.8, 0.6), [], 0
    if words > 50:
        yield "\n".join(lines)


def chain(texts: list[str], splitter: Any) -> list[str | None]:
    """The first failing rule of each text; what the chain does not ask for is not measured."""
    import pyarrow as pa

    from stages.signals.config import SignalsConfig
    from stages.signals.measure import measure
    from tests.peers.presets import first_rules

    config = SignalsConfig(splitter=splitter, groups=(), line_rules=("c4@fineweb",))
    return first_rules(pa.table(measure(texts, config).columns), PRESET)


def every_signal(texts: list[str], folder: Path) -> None:
    """All columns and the table of spans, as `signals` makes them of a shard."""
    import pyarrow as pa

    from stages.signals.bad_words import measure_bad_words
    from stages.signals.measure import measure
    from stages.signals.models import (
        NgramScorer,
        identify_languages,
        measure_line_languages,
        measure_perplexity,
    )
    from stages.signals.outputs import make_view_table

    model = DATA.parent / "models" / "lid.176.ftz"
    measured = measure(texts)
    columns = measured.columns
    spoken, columns["language_score"] = identify_languages(texts, model, 1000)
    columns["line_language_share"] = measure_line_languages(texts, spoken, model, 1000)
    columns |= measure_bad_words(texts, spoken, columns["words"], folder / "words")
    columns |= measure_perplexity(texts, spoken, [NgramScorer(folder / "ngrams", "en")])
    ids = pa.array(map(str, range(len(texts))))
    pa.table({"doc_id": ids, "language": spoken, **columns})
    make_view_table(ids, measured.views, measured.cuts)


def set_up(folder: Path, texts: list[str], others: list[str]) -> None:
    """Lay down texts, bad words and an n-gram model of `others`."""
    import pyarrow as pa

    from stages.language_model.config import NgramConfig
    from stages.language_model.estimate import estimate
    from stages.language_model.perplexity import WordTokens

    (folder / "texts").write_text(json.dumps(texts), encoding="utf-8")
    words: dict[str, list[str]] = {}
    for row in read(DATA.parent / "blocklists" / "ldnoobw.jsonl.zst"):
        words.setdefault(row["lang"], []).append(row["term"].lower())
    (folder / "words").mkdir()
    (folder / "words" / "bad-words.json").write_text(json.dumps(words), encoding="utf-8")
    config = NgramConfig()
    lines, _ = WordTokens.from_config(config).lines(others)
    offsets, data = pa.py_buffer(lines.offsets), pa.py_buffer(lines.data)
    column = pa.LargeStringArray.from_buffers(len(lines), offsets, data).cast(pa.string())
    estimate([pa.table({"line": column})], folder / "ngrams", config, "1GB")


def work(name: str, folder: Path, out: Path) -> None:
    """Do one work in this process; leave its verdicts and what it cost."""
    texts = json.loads((folder / "texts").read_text(encoding="utf-8"))
    reasons = None
    for given in ([WARM], texts):
        ready = time.process_time()
        if name == EVERY:
            every_signal(given, folder)
        else:
            reasons = chain(given, CHAINS[name])
    told = {
        "ready": ready,
        "seconds": time.process_time(),
        "peak": peak_memory(),
        "reasons": reasons,
    }
    out.write_text(json.dumps(told))


def peak_memory() -> int:
    """Bytes; Linux counts a parent's peak for its child too, except here."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def run(name: str, folder: Path, peers: str | None) -> dict[str, Any]:
    """The work in a process of its own."""
    out = folder / "out"
    if name == PEER:
        script = str(Path(__file__).with_name("signals_peer.py"))
        command = [str(peers), script, str(folder / "texts"), str(out)]
    else:
        command = [sys.executable, "-m", "tests.benchmarks.signals", "--work", name]
        command += ["--folder", str(folder), "--out", str(out)]
    subprocess.run(command, check=True)
    told: dict[str, Any] = json.loads(out.read_text())
    return told


def equal_verdicts(name: str, told: dict[str, Any], peer: dict[str, Any] | None) -> str:
    """Share of documents with the peer's first reason, and with its verdict."""
    from tests.peers.presets import RULE_OF

    if peer is None or told["reasons"] is None:
        return "-"
    theirs = [None if one is None else RULE_OF["chain"][one] for one in peer["reasons"]]
    ours = theirs if name == PEER else told["reasons"]
    both = list(zip(ours, theirs, strict=True))
    reasons = sum(own == other for own, other in both) / len(both)
    verdicts = sum((own is None) == (other is None) for own, other in both) / len(both)
    assert name != "chain, spaCy" or reasons == 1, "the rules differ on the same words"
    return f"{verdicts:.2%} / {reasons:.2%}"


def report(runs: dict[str, list[dict[str, Any]]], documents: int) -> str:
    """The table of rates."""
    from tests.benchmarks.extraction import table

    def spent(name: str) -> list[float]:
        return [told["seconds"] - told["ready"] for told in runs[name]]

    rows = []
    peer = runs[PEER][0] if PEER in runs else None
    for name, rounds in runs.items():
        over = "-"
        if PEER in runs:
            each = [other / own for own, other in zip(spent(name), spent(PEER), strict=True)]
            middle = statistics.median(spent(PEER)) / statistics.median(spent(name))
            over = f"{middle:.1f} ({min(each):.1f} to {max(each):.1f})"
        whole = statistics.median(told["seconds"] for told in rounds)
        rows.append(
            (
                name,
                f"{statistics.median(spent(name)):.2f}",
                f"{documents / statistics.median(spent(name)):,.0f}",
                over,
                f"{statistics.median(told['ready'] for told in rounds):.2f}",
                f"{documents / whole:,.0f}",
                f"{max(told['peak'] for told in rounds) / 2**20:,.0f}",
                equal_verdicts(name, rounds[0], peer),
            )
        )
    head = ("", "CPU s", "documents a CPU s", f"over {PEER}", "start", "whole", "peak MiB")
    return table((*head, "equal verdicts / reasons"), rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peers", default=os.environ.get("INGOT_PEERS"), help="its Python")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        work(chosen.work, chosen.folder, chosen.out)
        return
    found = pieces(2 * chosen.documents)
    texts, others = found[: chosen.documents], found[chosen.documents :]
    names = [*([PEER] if chosen.peers else []), *CHAINS, EVERY]
    with tempfile.TemporaryDirectory(prefix="ingot-benchmark-") as path:
        folder = Path(path)
        set_up(folder, texts, others)
        for name in (*CHAINS, EVERY):  # What is compiled is kept from here on.
            run(name, folder, None)
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for _ in range(chosen.rounds):
            for name in names:
                runs[name].append(run(name, folder, chosen.peers))
    words = statistics.median(len(text.split()) for text in texts)
    characters = sum(map(len, texts))
    print(f"{len(texts):,} documents, {characters:,} characters, median {words:.0f} words")
    print(report(runs, len(texts)))


if __name__ == "__main__":
    main()
