"""What the splitters of languages cost: CPU seconds beside the compiled splitter and datatrove.

`python -m tests.benchmarks.language_splitters [--peers PYTHON] [--rounds 3]` splits 1,000 passages
(300 Korean ones) of tests/peers/passages.py in each language, everything loaded before; least of
the rounds. It needs the extra `splitters` and ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from peers.passages import LABELS, passages

from stages.filter import presets
from stages.signals.config import SignalsConfig
from stages.signals.measure import RunInputs, measure_columns
from stages.text.batch import split_texts
from stages.text.language_splitters import find_language_tokens

COUNTS = {"ar": 1000, "ja": 1000, "ko": 300, "th": 1000, "zh": 1000}
SEED = 1021


def spent(work: Callable[[], object], rounds: int) -> float:
    """The least CPU seconds of a round, after one that loads."""
    work()
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def all_signals(texts: list[str], language: str, *split: str) -> None:
    """Every signal of texts alone, with the words of `split` languages."""
    config, nothing = SignalsConfig(language_splitters=split), [None] * len(texts)
    measure_columns(texts, nothing, [language] * len(texts), config, RunInputs())


def time_datatrove(python: str, texts_by_language: dict[str, list[str]]) -> dict[str, float]:
    """CPU seconds of datatrove's splitters, after its filters have loaded them."""
    bounds = json.loads(Path(presets.__file__).with_name("fineweb_2.json").read_text())["languages"]
    script = Path(__file__).parents[1] / "peers" / "datatrove_fineweb_2.py"
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "given"), Path(folder, "answers")
        with given.open("w", encoding="utf-8") as file:
            for label, row in LABELS.items():
                if (language := row["lid.176"]) in texts_by_language:
                    config = {**bounds[label], "stop_words": row["stop_words"]}
                    asked = {"language": language, "label": label, "config": config}
                    file.write(json.dumps({**asked, "texts": texts_by_language[language]}) + "\n")
        subprocess.run([python, str(script), str(given), str(out)], check=True)
        answers = map(json.loads, out.read_text().splitlines())
        return {answer["language"]: answer["seconds"] for answer in answers}


def main() -> None:
    """Print a row a language."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peers", help="a Python that has datatrove (tests/peers/setup.sh)")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    texts = {language: passages(language, count, SEED) for language, count in COUNTS.items()}
    peers = time_datatrove(given.peers, texts) if given.peers else {}
    print("language | characters | compiled | library | datatrove | signals | signals with it")
    for language, own in texts.items():
        compiled = spent(lambda own=own: split_texts(own), given.rounds)
        library = spent(
            lambda own=own, language=language: [find_language_tokens(t, language) for t in own],
            given.rounds,
        )
        without = spent(lambda own=own, language=language: all_signals(own, language), given.rounds)
        with_it = spent(
            lambda own=own, language=language: all_signals(own, language, language), given.rounds
        )
        peer = peers.get(language, float("nan"))
        print(
            f"{language} | {sum(map(len, own)):,} | {compiled:.4f} s | {library:.2f} s "
            f"(x {library / compiled:.0f}) | {peer:.2f} s (x {peer / library:.2f} of ours) | "
            f"{without:.2f} s | {with_it:.2f} s (x {with_it / without:.1f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
