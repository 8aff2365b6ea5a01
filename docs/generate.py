"""Write the generated tables of docs/: `python docs/generate.py [--check]`.

A page marks a table by two comments, `generated: NAME` and `end`; the script writes everything
between them. `--check` changes nothing, prints the differences, and exits with 1 if there are any.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from artifacts_schema.kinds import KINDS, Kind
from stages.engine.protocol import Role, Stage, stage_named, stage_names

DOCS = Path(__file__).resolve().parent
NO_BREAK = "\N{NO-BREAK SPACE}"
_BLOCK = re.compile(r"(<!-- generated: ([a-z_]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; `|` within a cell is escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines
    )


# Config and Execution ----------------------------------------------------------------------------


def settings_table(model: type[BaseModel]) -> str:
    """Every field of a model, nested ones by their dotted path."""
    rows = list(_fields(model, None, ""))
    if not rows:
        return "It takes none.\n"
    return table(["field", "type", "default", "range", "meaning"], rows)


def _fields(
    model: type[BaseModel], default: BaseModel | None, prefix: str
) -> Iterator[tuple[str, ...]]:
    """`default` is the instance that the parent has as default, if it has one."""
    for name, field in model.model_fields.items():
        nested, repeated = _nested(field.annotation)
        value = getattr(default, name) if default is not None else _default(field)
        path = f"{prefix}{name}"
        expands = nested is not None and not repeated and value is not None
        text = "see below" if expands else _format_default(value)
        yield (
            f"`{path}`",
            type_name(field.annotation),
            text,
            _range(field),
            field.description or "",
        )
        if nested and repeated:
            yield from _fields(nested, None, f"{path}[].")
        elif nested:
            defaults = value if isinstance(value, BaseModel) else None
            yield from _fields(nested, defaults, f"{path}.")


class _Required:
    """Stands for the default of a field that has none."""


class _MachineDefault:
    """Stands for a default that is looked up where the stage runs."""


def _default(field: FieldInfo) -> Any:
    if field.is_required():
        return _Required
    factory = field.default_factory
    if factory is not None and not isinstance(factory, type):
        return _MachineDefault
    return field.get_default(call_default_factory=True)


def _format_default(value: Any) -> str:
    """A default as a recipe would write it."""
    if value is _Required:
        return "required"
    if value is _MachineDefault:
        return "of the machine"
    return f"`{json.dumps(_plain(value), ensure_ascii=False)}`"


def _plain(value: Any) -> Any:
    """JSON-ready; of nested settings only what differs from their own defaults."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields.items()
        usual = {name: field.get_default(call_default_factory=True) for name, field in fields}
        values = {name: getattr(value, name) for name in usual}
        return {name: _plain(v) for name, v in values.items() if v != usual[name]}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def type_name(annotation: Any) -> str:
    """A type in words: `int or null`, `list of text`, one of `a`, `b`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return type_name(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in arguments)
    if origin in (Union, UnionType):
        return " or ".join(type_name(one) for one in arguments)
    if origin is tuple:
        return f"list of {type_name(arguments[0])}"
    if origin is dict:
        return f"text → {type_name(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "settings"
    named = {str: "text", int: "int", float: "float", bool: "bool", NoneType: "null"}
    return named[annotation]


def _nested(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The settings that a field holds or may hold, and whether it holds a list of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    if get_origin(annotation) in (Union, UnionType):
        held = (_nested(one) for one in get_args(annotation))
        return next((pair for pair in held if pair[0] is not None), (None, False))
    if get_origin(annotation) is tuple:
        model, _ = _nested(get_args(annotation)[0])
        return model, True
    return None, False


def _range(field: FieldInfo) -> str:
    """Bounds and patterns of a field."""
    parts = []
    for bound in field.metadata:
        for name, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
            if (value := getattr(bound, name, None)) is not None:
                parts.append(f"{sign}{NO_BREAK}{_number(value)}")
        if least := getattr(bound, "min_length", None):
            parts.append("not empty" if least == 1 else f"at least {least}")
        if pattern := getattr(bound, "pattern", None):
            parts.append(f"`{pattern}`")
    return f",{NO_BREAK}".join(parts)


def _number(value: float) -> str:
    """Bounds that are powers of two are written as such."""
    if isinstance(value, int) and value >= 2**16 and value & (value - 1) == 0:
        return f"2^{value.bit_length() - 1}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


# Stages and kinds --------------------------------------------------------------------------------


def facts(stage: type[Stage]) -> str:
    """What the stage declares about itself, in one line."""
    promise = {
        "bytes": "same key, same bytes",
        "numerics": "same bytes at the same layout (device, threads, dtype, libraries)",
    }[stage.reproducible]
    parts = [f"Version {stage.version}", f"reproducible: `{stage.reproducible}` ({promise})"]
    if stage.handles_documents:
        parts.append("accounts for every record, or commits nothing")
    if stage.libraries:
        parts.append(f"libraries on record: {', '.join(stage.libraries)}")
    return "; ".join(parts) + ".\n"


def inputs_table(stage: type[Stage]) -> str:
    """Roles, kinds, and how many of each."""
    if not stage.inputs:
        return "It reads nothing.\n"
    rows = [
        (f"`{name}`", f"`{role.kind}`", how_many(role), KINDS[role.kind].description)
        for name, role in stage.inputs.items()
    ]
    return table(["role", "kind", "how many", "what that is"], rows)


def how_many(role: Role) -> str:
    """`one`, `one or none`, `any number`, `one or more`."""
    least = ("one or none", "one") if role.most == 1 else ("any number", "one or more")
    return least[min(role.least, 1)]


def outputs_tables(stage: type[Stage]) -> str:
    """The tables and files of every kind that the stage makes; outputs of one kind share them."""
    by_kind: dict[str, list[str]] = {}
    for output, kind in stage.outputs.items():
        by_kind.setdefault(kind, []).append(f"`{output}`")
    return "\n".join(
        f"### {', '.join(outputs)}\n\n{_kind(KINDS[kind])}" for kind, outputs in by_kind.items()
    )


def _kind(kind: Kind) -> str:
    parts = [f"Kind `{kind.name}`, version {kind.version}. {kind.description}\n"]
    for pattern, schema in kind.tables.items():
        more = ", and a column for each thing measured" if schema.open else ""
        rows = [(f"`{c.name}`", f"`{c.type}`", c.description) for c in schema.columns]
        parts.append(
            f"`{pattern}` (Parquet{more}):\n\n{table(['column', 'type', 'meaning'], rows)}"
        )
    if kind.files:
        files = [(f"`{pattern}`", text) for pattern, text in kind.files.items()]
        parts.append(table(["file", "what it holds"], files))
    return "\n".join(parts)


def stages_table(_: type[Stage]) -> str:
    """All stages of Ingot, in the order of the table in the design."""
    rows = []
    for name in own_stages():
        stage = stage_named(name)
        reads = ", ".join(f"{role}{_mark(wanted)}" for role, wanted in stage.inputs.items())
        story = (stage.__doc__ or "").strip().splitlines()[0]
        rows.append((f"[{name}](stages/{name}.md)", reads or "–", ", ".join(stage.outputs), story))
    return table(["stage", "reads", "writes", "does"], rows)


def _mark(role: Role) -> str:
    return {"one": "", "one or none": "?", "any number": "*"}.get(how_many(role), "+")


def own_stages() -> list[str]:
    """Names of the stages that come with Ingot, a plugin's left out, in the order of a pipeline."""
    bundled = [name for name in stage_names() if stage_named(name).__module__.startswith("stages.")]
    order = {name: place for place, name in enumerate(_ORDER)}
    return sorted(bundled, key=lambda name: (order.get(name, len(order)), name))


_ORDER = (
    "sample", "ingest", "conversations", "preferences", "benchmarks", "quality_models", "signals",
    "dedup", "decontaminate", "filter", "tokenizer", "pack", "pack_chat",
    "pack_preferences", "pretrain", "teacher", "sft", "packed_preference", "dpo", "preference",
    "reference", "reward", "merge_checkpoints",
    "extend_vocabulary", "evaluate", "export", "export_gguf",
)  # fmt: skip


def rules_table(_: type[Stage]) -> str:
    """The rules of every preset of `filter`; those of whole presets above are named by these."""
    from stages.filter.presets import PRESETS
    from stages.filter.rules import Rule

    parts: list[str] = []
    above: dict[str, tuple[Rule, ...]] = {}
    for preset, rules in PRESETS.items():
        own, within = list(rules), {}
        for name, known in sorted(above.items(), key=lambda item: -len(item[1])):
            if len(known) > 1 and all(rule in own for rule in known):
                within[name] = rules.index(known[0])
                own = [rule for rule in own if rule not in known]
        others = " and ".join(f"`{name}`" for name in sorted(within, key=lambda name: within[name]))
        intro = f"All of {others}{', and:' if own else '.'}\n\n" if within else ""
        heads = ["rule", "signal", "passes where it is"]
        rows = [(f"`{rule.name}`", f"`{rule.signal}`", rule.bound) for rule in own]
        sources = "; ".join(dict.fromkeys(rule.source for rule in own))
        title = f"**`{preset}`**{f' ({sources})' if sources else ''}\n\n"
        parts.append(f"{title}{intro}{table(heads, rows) if rows else ''}".rstrip("\n") + "\n")
        above[preset] = rules
    return "\n".join(parts)


def signals_table(_: type[Stage]) -> str:
    """Every signal that `signals` measures."""
    from stages.signals.columns import ColumnChoice, choose_signals

    columns = ColumnChoice(
        language=True,
        url_lists=True,
        word_lists=True,
        ngram_models=True,
        classifiers=("<name>",),
        pages=True,
        language_splitters=True,
    )
    signals = choose_signals(columns)
    rows = [(f"`{s.name}`", f"`{s.type}`", s.unit, s.source, s.description) for s in signals]
    return table(["signal", "type", "unit", "defined by", "meaning"], rows)


def commands_table(_: type[Stage]) -> str:
    """Every command of `ingot`."""
    from flows.cli.main import COMMANDS

    rows = [(f"`ingot {name}`", text) for name, (_, text) in COMMANDS.items()]
    return table(["command", "does"], rows)


def minhash_table(_: type[Stage]) -> str:
    """The MinHash presets of `dedup`, where they come from, and what of each is as published."""
    from stages.dedup.presets import PRESETS

    rows = [
        (
            f"`{name}`",
            f"{preset.ngram} {preset.unit}s, `{preset.normalise}`",
            f"{preset.bands} × {preset.rows}",
            f"{preset.fidelity} ({preset.source})",
        )
        for name, preset in PRESETS.items()
    ]
    return table(["preset", "shingles", "bands × rows", "what is as published, and what not"], rows)


def curve_table(_: type[Stage]) -> str:
    """How likely the bands of each preset propose a pair, by similarity."""
    from stages.dedup.presets import PRESETS, candidate_probability

    at = (0.5, 0.6, 0.7, 0.8, 0.9)
    rows = [
        (f"`{name}`", *(f"{candidate_probability(s, p.bands, p.rows):.4f}" for s in at))
        for name, p in PRESETS.items()
    ]
    return table(["preset", *(f"{s:g}" for s in at)], rows)


BLOCKS: dict[str, Callable[[type[Stage]], str]] = {
    "facts": facts,
    "inputs": inputs_table,
    "config": lambda stage: settings_table(stage.Config),
    "execution": lambda stage: settings_table(stage.Execution),
    "outputs": outputs_tables,
    "stages": stages_table,
    "rules": rules_table,
    "signals": signals_table,
    "commands": commands_table,
    "minhash": minhash_table,
    "curve": curve_table,
}


def rewrite_page(text: str, stage: type[Stage]) -> str:
    """A page with its generated blocks as the code has them now; ValueError for an unknown one."""

    def block(match: re.Match[str]) -> str:
        if match[2] not in BLOCKS:
            raise ValueError(f"no generated block '{match[2]}'; known: {', '.join(BLOCKS)}")
        return f"{match[1]}\n{BLOCKS[match[2]](stage)}\n{match[3]}"

    return _BLOCK.sub(block, text)


def pages() -> Iterator[tuple[Path, type[Stage]]]:
    """Every page, and the stage that it is about (any, for pages about none)."""
    known = own_stages()
    for path in sorted(DOCS.rglob("*.md")):
        about = path.stem if path.parent.name == "stages" and path.stem in known else known[0]
        yield path, stage_named(about)


def main(arguments: Sequence[str]) -> int:
    """Rewrite all pages, or with `--check` only say what differs; returns the exit code."""
    check, stale = "--check" in arguments, 0
    for path, stage in pages():
        old = path.read_text(encoding="utf-8")
        new = rewrite_page(old, stage)
        if new == old:
            continue
        stale += 1
        name = path.relative_to(DOCS.parent).as_posix()
        if check:
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, "the code", n=0)
            print("\n".join(line.rstrip("\n") for line in lines))
        else:
            path.write_text(new, encoding="utf-8")
            print(f"wrote {name}")
    if check and stale:
        print(f"{stale} pages are not what the code says: run `python docs/generate.py`")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
