"""How often signals that have not moved are said to have: `python -m tests.benchmarks.drift`.

Each comparison has ten signals and 60 web sites of 10 pages on each side. A page's value is that of
its site, drawn from a normal distribution, and a little of its own, so pages of a site are alike.
"""

from __future__ import annotations

import argparse

import numpy as np

from flows.analysis.drift import compare_distributions
from stages.scoring.uncertainty import wilson

SIGNALS, SITES, PAGES = 10, 60, 10


def false_alarms(trials: int, seed: int, *, by_site: bool) -> int:
    """Trials in which at least one signal is said to differ; no signal does."""
    site = np.repeat(np.arange(2 * SITES), PAGES)
    units = site if by_site else np.arange(len(site))
    alarms = 0
    for trial in range(trials):
        draw = np.random.default_rng(seed + trial)
        values = {
            str(i): draw.normal(0, 1, 2 * SITES)[site] + draw.normal(0, 0.3, len(site))
            for i in range(SIGNALS)
        }
        drifts = compare_distributions(values, site >= SITES, units, seed=trial)
        alarms += any(one.beyond_chance for one in drifts)
    return alarms


def main() -> None:
    """Print the counts with Wilson's intervals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=50_000)
    options = parser.parse_args()
    for by_site in (True, False):
        alarms = false_alarms(options.trials, options.seed, by_site=by_site)
        low, high = wilson(alarms, options.trials)
        unit = "sites" if by_site else "documents"
        print(f"drawn by {unit}: {alarms} of {options.trials} [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
