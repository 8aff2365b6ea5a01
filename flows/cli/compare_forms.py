"""`ingot compare-forms`: what the forms of a release cost beside their checkpoint."""

from __future__ import annotations

import click

from flows.analysis.artifacts import open_store
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table
from flows.cli.progress import print_line


@click.command("compare-forms")
@click.argument("checkpoint")
@click.argument("forms", nargs=-1, required=True, metavar="FORM...")
@click.option("--held-out", metavar="REF", help="Packed held-out text, for bits per byte.")
@click.option(
    "--benchmarks", metavar="REF", multiple=True, help="Items with choices; may be repeated."
)
@click.option(
    "--max-items",
    metavar="N",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Items of one benchmark.",
)
@click.option(
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    help="Compare this metric alone; may be repeated. Fewer comparisons see smaller differences.",
)
@store_option
@json_option
def compare_forms(
    checkpoint: str,
    forms: tuple[str, ...],
    held_out: str | None,
    benchmarks: tuple[str, ...],
    max_items: int,
    metrics: tuple[str, ...],
    store: str,
    as_json: bool,
) -> None:
    """Say how large each FORM of a CHECKPOINT is, and what its numbers cost.

    A form is a release that `export` made (in any type, int8 or int4), or a GGUF file of
    `export_gguf`. Its numbers are read back into Ingot's decoder in float32, and measured on the
    same held-out text and items as the checkpoint. Differences are paired; `p` is adjusted for all
    scores of a form (Holm). Nothing is written.

    \b
    ingot compare-forms quickstart/dpo mine/int8 mine/int4 mine/q4_0 \\
      --held-out quickstart/pack:held_out --benchmarks quickstart/benchmarks
    """  # fmt: skip
    from flows.analysis import form_comparison
    from stages.evaluate.config import EvaluateConfig

    config = EvaluateConfig(max_items=max_items)
    base, costs = form_comparison.compare_forms(
        open_store(store), checkpoint, forms, held_out=held_out, benchmarks=benchmarks,
        metrics=metrics, config=config,
        progress=lambda ref: print_line(f"measuring {ref}"),
    )  # fmt: skip
    if as_json:
        print_json(
            {"ref": base.ref, "bytes": base.bytes, "forms": [one.to_json() for one in costs]}
        )
        return
    sizes = [(base.ref, base.form, f"{base.bytes:,}", "")]
    for one in costs:
        share = f"{one.form.bytes / base.bytes:.1%}"
        sizes.append((one.form.ref, one.form.form, f"{one.form.bytes:,}", share))
    print_table(["model", "form", Column("bytes", right=True), Column("share", right=True)], sizes)
    echo()
    columns: list[str | Column] = ["model", "benchmark", "metric"]
    titles = ("items", "checkpoint", "model", "difference", "95 %", "p")
    columns += [Column(title, right=True) for title in titles]
    rows = []
    for one in costs:
        for score in one.differences:
            paired = score.paired
            interval = "" if paired.low is None else f"{paired.low:+.4f} to {paired.high:+.4f}"
            rows.append(
                (
                    one.form.ref,
                    score.label,
                    score.metric,
                    f"{paired.items:,}",
                    f"{paired.a:.4f}",
                    f"{paired.b:.4f}",
                    f"{paired.value:+.4f}",
                    interval,
                    "" if score.adjusted is None else f"{score.adjusted:.3f}",
                )
            )
    print_table(columns, rows)
    worse = sum(score.is_worse for one in costs for score in one.differences)
    total = sum(len(one.differences) for one in costs)
    echo(f"\n{worse} of {total} scores are worse than the checkpoint's beyond chance")
