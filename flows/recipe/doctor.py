"""`ingot doctor`: whether the store, this machine and the pools of a profile can run its steps.

Each pool says what its scheduler answers (`Pool.doctor`), then runs one short job on a node
(`Pool.probe`): what that node says of itself is compared with this machine. Nothing else is sent,
and no store is made.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import IngotError, StoreError
from artifacts_schema.store import Store, layout
from flows.recipe.dispatch import Check, Dispatcher, Pool, ProbeAnswer, open_pool
from flows.recipe.machine_checks import check_permissions
from flows.recipe.profile import LOCAL, Profile, Resources
from stages.engine.probe import PREFECT_API, QUESTION, Machine, describe_machine

CLOCK_SECONDS = 5.0
"""How far clocks may differ: logs of several machines are read together."""
PROBE_CPUS, PROBE_MEMORY, PROBE_TIME = 2, "2 GB", "5 min"
"""What a probe asks for at most: little, so that it starts soon."""
_MEMORY_SHARE = 0.95
"""Of the memory that was asked for; schedulers round, and keep some for themselves."""


def diagnose(profile: Profile, url: str, *, wait: float) -> Iterator[Check]:
    """Every check in turn; `wait` seconds for each probe job, 0 for none.

    UsageError for pools and resources that no pool of that type can have.
    """
    Dispatcher(profile)
    pools = {name: open_pool(entry) for name, entry in profile.pools.items()}
    names = ", ".join([LOCAL, *pools])
    yield Check("profile", True, f"{profile.name}: pools {names}")
    key = secrets.token_hex(32)
    try:
        store = Store.open(url, create=False)
        store.backend.replace(layout.work(key, QUESTION), b"{}")
    except StoreError as error:
        yield Check("store", False, f"{error.where or url}: {error.what}", error.hint or "")
        for name, pool in pools.items():
            yield from _prefixed(name, pool.doctor(places_of(profile, name)))
            yield Check(f"{name}: node", None, "no store, so no probe job")
        return
    try:
        here = describe_machine(store, key)
        yield from check_store(here, url)
        if store.backend.local:
            yield check_permissions(url)
        yield from check_here(here, places_of(profile, LOCAL))
        for name, pool in pools.items():
            places = places_of(profile, name)
            yield from _prefixed(name, pool.doctor(places))
            if wait:
                yield from _prefixed(name, _probe(pool, store, key, places, here, wait))
    finally:
        store.backend.remove(layout.work(key))


def places_of(profile: Profile, pool: str) -> dict[str, Resources]:
    """The resources that name a pool, by stage."""
    return {stage: one for stage, one in profile.places.items() if one.pool == pool}


def _prefixed(pool: str, checks: Iterator[Check]) -> Iterator[Check]:
    """The checks of a pool; an error of its scheduler ends them as a failure."""
    try:
        for check in checks:
            yield replace(check, name=f"{pool}: {check.name}")
    except IngotError as error:
        where = f"{error.where}: " if error.where else ""
        yield Check(f"{pool}: scheduler", False, f"{where}{error.what}", error.hint or "")


def _probe(
    pool: Pool, store: Store, key: str, places: Mapping[str, Resources], here: Machine, wait: float
) -> Iterator[Check]:
    wanted = probe_resources(pool.name, places)
    try:
        answer = pool.probe(store, key, wanted, wait)
    except IngotError as error:
        yield Check("node", False, error.what, error.hint or "")
        return
    yield from compare(answer, here, wanted, store.url)


def probe_resources(pool: str, places: Mapping[str, Resources]) -> Resources:
    """What a probe of a pool asks for: a little of each sort that its stages ask for."""
    cpus = [one.cpus for one in places.values() if one.cpus is not None]
    sizes = [size for one in places.values() for size in one.memory]
    bytes_of = Resources(memory=(PROBE_MEMORY, *sizes)).memory_bytes
    smallest = min(zip(bytes_of, (PROBE_MEMORY, *sizes), strict=True))[1]
    times = [one for one in places.values() if one.minutes is not None]
    shortest = min(times, key=lambda one: one.minutes or 0, default=Resources())
    probe = Resources(time=PROBE_TIME)
    return Resources(
        pool=pool,
        cpus=min(PROBE_CPUS, *cpus) if cpus else None,
        gpus=int(any(one.gpus for one in places.values())),
        memory=(smallest,) if sizes else (),
        time=min((probe, shortest), key=lambda one: one.minutes or probe.minutes or 0).time
        or PROBE_TIME,
    )


# What a machine says -----------------------------------------------------------------------------


def check_store(machine: Machine, url: str) -> Iterator[Check]:
    """What a machine could do in the store."""
    wrong = {name: text for name, text in machine.store.items() if text}
    if not wrong:
        yield Check("store", True, f"{url}: {', '.join(machine.store)} on {machine.host}")
        return
    name, text = next(iter(wrong.items()))
    hints = {
        "hard link": "a commit is a hard link: keep the store on a file system that has them, or "
        "in a bucket",
        "create once": "two runs could overwrite each other there: use another file system",
    }
    hint = hints.get(name, "the store must be mounted there for reading and writing")
    yield Check("store", False, f"{', '.join(wrong)} on {machine.host}: {text}", hint)


def check_here(machine: Machine, places: Mapping[str, Resources]) -> Iterator[Check]:
    """Whether this machine has what the stages of the pool `local` are to have."""
    short = [
        f"{stage} is to have {one.describe()}"
        for stage, one in places.items()
        if (one.cpus or 0) > machine.cores or max(one.memory_bytes, default=0) > machine.memory
    ]
    text = f"{machine.host}: {machine.cores} cores, {format_bytes(machine.memory)}"
    if short:
        yield Check("local: machine", False, f"{text}; {'; '.join(short)}", "ask for less")
    else:
        yield Check("local: machine", True, text)
    yield from _check_prefect(machine, "local: Prefect API")


def compare(answer: ProbeAnswer, here: Machine, wanted: Resources, url: str) -> Iterator[Check]:
    """What a node says, beside what this machine says and what the node was asked for."""
    there = answer.machine
    yield Check("node", True, f"job {answer.job} ran on {there.host}")
    yield from check_store(there, url)
    yield _check_clock(answer)
    yield _check_program(there, here)
    yield _check_libraries(there, here)
    yield _check_resources(there, wanted)
    yield from _check_prefect(there, "Prefect API")


def _check_clock(answer: ProbeAnswer) -> Check:
    """The node read its clock between two times of ours: outside of them, it is wrong."""
    ahead, behind = answer.machine.time - answer.latest, answer.earliest - answer.machine.time
    most = max(ahead, behind)
    if most > CLOCK_SECONDS:
        way = "ahead of" if ahead > behind else "behind"
        text = f"at least {most:.0f} s {way} this machine's"
        return Check("clock", False, text, "let NTP set both clocks")
    bound = answer.latest - answer.earliest + max(0.0, most)
    return Check("clock", True, f"within {max(1.0, bound):.0f} s of this machine's")


def _check_program(there: Machine, here: Machine) -> Check:
    stages = {
        name: there.stages.get(name, "missing")
        for name, own in here.stages.items()
        if there.stages.get(name) != own
    }
    hint = "install the same Ingot, and the same packages with stages, everywhere"
    name = "same Ingot"
    if stages:
        texts = [f"{stage}: {text}, here {here.stages[stage]}" for stage, text in stages.items()]
        more = f"; and {len(texts) - 2} more stages" if len(texts) > 2 else ""
        return Check(name, False, "; ".join(texts[:2]) + more, hint)
    if there.engine != here.engine:
        text = f"the engine is another: {there.engine[:12]}, here {here.engine[:12]}"
        return Check(name, False, text, hint)
    return Check(name, True, f"the code of {len(here.stages)} stages and of the engine is equal")


def _check_libraries(there: Machine, here: Machine) -> Check:
    """Local parts of a version (`+cpu`, `+cu128`) may differ: the login node has no GPU."""
    other = {
        name: (there.libraries.get(name, "missing"), version)
        for name, version in here.libraries.items()
        if there.libraries.get(name, "missing").partition("+")[0] != version.partition("+")[0]
    }
    if there.python.rpartition(".")[0] != here.python.rpartition(".")[0]:
        other = {"python": (there.python, here.python), **other}
    if other:
        texts = [f"{name} {theirs} (here {ours})" for name, (theirs, ours) in other.items()]
        hint = "install with constraints.txt: other versions may make other bytes"
        return Check("versions", False, ", ".join(texts), hint)
    versions = ", ".join(
        f"{name} {there.libraries[name]}"
        for name in ("ingot", "torch", "pyarrow")
        if name in there.libraries
    )
    return Check("versions", True, f"Python {there.python}, {versions}")


def _check_resources(there: Machine, wanted: Resources) -> Check:
    rows: list[tuple[str, int, int, Callable[[int], str]]] = [
        ("cores", there.cores, wanted.cpus or 0, str),
        ("GPUs", there.gpus or 0, wanted.gpus, str),
        ("memory", there.memory, max(wanted.memory_bytes, default=0), format_bytes),
    ]
    texts, short = [], []
    for name, seen, amount, write in rows:
        if amount or name != "GPUs":
            request = f" (asked for {write(amount)})" if amount else ""
            texts.append(f"{name} {write(seen)}{request}")
        if seen < amount * (_MEMORY_SHARE if name == "memory" else 1):
            short.append(name)
    if short:
        hint = f"the job sees fewer {', '.join(short)} than it was given: ask the administrator"
        if "GPUs" in short:
            hint = "is torch there a build for its GPUs, and does the driver fit?"
        return Check("resources", False, ", ".join(texts), hint)
    return Check("resources", True, ", ".join(texts))


def _check_prefect(machine: Machine, name: str) -> Iterator[Check]:
    if machine.prefect is None:
        return
    if machine.prefect:
        hint = f"{PREFECT_API} must name a host that {machine.host} reaches; stages run without it"
        yield Check(name, False, machine.prefect, hint)
    else:
        yield Check(name, True, f"answers {machine.host}")
