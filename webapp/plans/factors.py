"""The table of factors: everything that a plan may vary.

A factor's stored values are those of `Trial.point` and `Result.point`. Factors of workloads are defined with their
engine in `plans.engines`. Settings are in `setting_rows`, with the worker's names, and are stored as text.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache

from webapp.core.errors import nearest
from webapp.plans.engines import ENGINE, ENGINES
from webapp.plans.setting_rows import SAME_STATE, SETTING_ROWS, Factor, FactorKind
from webapp.plans.steps import StepTexts
from webapp.plans.values import (
    Choice,
    Count,
    LayoutLine,
    Token,
    Value,
    ValueRefused,
)
from worker.contract.inventory import PurgeMethod
from worker.recipes import DEFAULT_ENGINE

__all__ = ["FACTORS", "Factor", "FactorKind", "Value", "ValueRefused", "by_cost", "closest"]


PURGE_LABELS = {
    "none": "none",
    PurgeMethod.DISCARD.value: "discard",
    PurgeMethod.NVME_FORMAT.value: "NVMe format, user data erase",
    PurgeMethod.NVME_FORMAT_CRYPTO.value: "NVMe format, crypto erase",
    PurgeMethod.NVME_SANITIZE_BLOCK.value: "NVMe sanitize, block erase",
    PurgeMethod.NVME_SANITIZE_CRYPTO.value: "NVMe sanitize, crypto erase",
    PurgeMethod.ATA_SECURE_ERASE.value: "ATA secure erase",
    PurgeMethod.ATA_ENHANCED_ERASE.value: "ATA enhanced secure erase",
    PurgeMethod.SCSI_FORMAT.value: "SCSI format",
}


AT_ONCE = "at_once"  # targets of a host that one trial uses together
HOSTS_AT_ONCE = "hosts_at_once"  # hosts that one trial uses together, each with one target
MAX_AT_ONCE = 16
CHANGE = "change"  # from the base, if a part changes one factor at a time
BASE = "base"  # its level without a change
STREAMS = "streams"  # names of the streams of a trial, if their workloads differ
STREAMS_ON = "streams_on"  # whether they share a target
STREAM = "stream"  # name of the stream of a result
OTHERS = "beside"  # names of the streams beside that of a result
BESIDE = " + "  # between the names of streams
PURGE = "purge"  # of the drive before a trial
BEFORE = "before"  # steps before a trial; also the field `before` of a part


_ENGINE = Factor(
    ENGINE,
    "Engine",
    Choice(tuple(ENGINES), {name: engine.LABEL for name, engine in ENGINES.items()}),
    default=DEFAULT_ENGINE,
    cost=40,
    help="program that produces the load; one per part",
)
_DRIVE = (
    Factor(
        PURGE,
        "Purge before",
        Choice(("none", *PurgeMethod), PURGE_LABELS),
        kind=FactorKind.DRIVE,
        cost=30,
        help="purge of the whole drive, or of all drives under the layout, before each trial: destroys all data",
    ),
    Factor(
        BEFORE,
        "Steps before",
        StepTexts(),
        kind=FactorKind.DRIVE,
        cost=30,
        help="preparation before the measurement, steps separated by semicolons; `once`: only before the first trial "
        "of the part",
        example="write 1x sequential 128k; flush; pause 60s, none",
    ),
)
_TARGETS = (
    Factor(
        AT_ONCE,
        "Targets at once",
        Count(1, MAX_AT_ONCE),
        kind=FactorKind.TARGETS,
        help="targets of one host and kind, in the chosen order: each runs the whole workload, all start together, "
        "and the result is their sum",
    ),
    Factor(
        HOSTS_AT_ONCE,
        "Hosts at once",
        Count(1, MAX_AT_ONCE),
        kind=FactorKind.TARGETS,
        help="hosts, each with one target of the same kind, in the chosen order: each runs the whole workload, all "
        "start together, and the result is their sum; the trials of the run never overlap",
    ),
)
_STREAM_TEXT = "[a-z][a-z0-9_-]*"
_STREAM_NAMES = rf"{_STREAM_TEXT}( *\+ *{_STREAM_TEXT})*"
_STREAMS = (
    Factor(
        STREAMS,
        "Streams",
        Token(_STREAM_NAMES, "`together`, `alone` or names of streams: `reader + writer`"),
        kind=FactorKind.STREAMS,
        example="alone, together",
        help="streams of the part that run at the same time: together is all of them, alone is each by itself",
    ),
    Factor(
        STREAMS_ON,
        "Targets of streams",
        Choice(("same", "each"), {"same": "same target", "each": "one target each"}),
        kind=FactorKind.STREAMS,
        example="same, each",
        help="same: all streams use one target; each: every stream uses its own target, in the chosen order",
    ),
)
_OF_RESULTS = (
    Factor(STREAM, "Stream", Token(_STREAM_TEXT, "the name of a stream"), kind=FactorKind.CHANGE),
    Factor(OTHERS, "Beside", Token(_STREAM_NAMES, "`alone` or names of streams"), kind=FactorKind.CHANGE),
)
_CHANGE = Factor(CHANGE, "Change", Token(r".{1,500}", f"`{BASE}`"), kind=FactorKind.CHANGE)
LAYOUT = "layout"
_LAYOUT = Factor(
    LAYOUT,
    "Layout",
    LayoutLine(),
    kind=FactorKind.LAYOUT,
    cost=200,
    example="single / xfs, raid0 x4 chunk 64k / xfs",
    help="drives of a pool, combined and formatted; destroys all data on them. Several in one line: "
    "raid0 x1..8 chunk 64k · raid5 x4 chunk 8k..2M *2 / xfs|ext4 · 2 arrays of raid0 x4 chunk 64k / lvm stripe 256k · "
    "vd raid5 x4 strip 8k..1M *2 wb|wt",
)
_SETTINGS = tuple(
    Factor(row.name, row.label, row.values, row.unit, FactorKind.SETTING, row.cost, help=row.help, example=row.example)
    for row in SETTING_ROWS
)


def _of_engines() -> list[Factor]:
    """Factors of all engines, each name once, with the definition of the first engine."""
    by_name: dict[str, Factor] = {}
    for engine in ENGINES.values():
        for factor in engine.FACTORS:
            by_name.setdefault(factor.name, factor)
    return list(by_name.values())


class _Factors(Mapping[str, Factor]):
    """The factors by name. It also finds the factors of streams, such as `reader.iodepth`, but does not list them."""

    def __init__(self, listed: Iterable[Factor]) -> None:
        self._listed = {factor.name: factor for factor in listed}
        self._of_stream = lru_cache(maxsize=1000)(self._named_for_stream)

    def __getitem__(self, name: str) -> Factor:
        return self._listed.get(name) or self._of_stream(name)

    def __contains__(self, name: object) -> bool:
        return name in self._listed or super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def _named_for_stream(self, name: str) -> Factor:
        stream, _, plain_name = name.partition(".")
        if plain_name not in OF_STREAMS or not stream:
            raise KeyError(name)
        factor = self._listed[plain_name]
        word = factor.label[:2]
        label = factor.label if word[1:].isupper() or "/" in word else word.lower() + factor.label[2:]
        return replace(factor, name=name, label=f"{stream}: {label}")


# Factors that a stream may have of its own: its engine, those of its workload and processes, and the layout under it.
OF_STREAMS = frozenset({ENGINE, LAYOUT, *(factor.name for factor in _of_engines())} - {"drop_caches"})
FACTORS: Mapping[str, Factor] = _Factors(
    (_ENGINE, *_of_engines(), _LAYOUT, *_TARGETS, *_STREAMS, *_OF_RESULTS, _CHANGE, *_DRIVE, *_SETTINGS)
)


def stream_and_factor(name: str) -> tuple[str, str]:
    """`reader.iodepth` is ("reader", "iodepth"); a factor that belongs to no stream has the stream ""."""
    stream, dot, plain_name = name.partition(".")
    return (stream, plain_name) if dot and plain_name in OF_STREAMS else ("", name)


def name_layout(names: Iterable[str]) -> bool:
    """Whether one of the factors is a layout, of all streams or of one."""
    return any(stream_and_factor(name)[1] == LAYOUT for name in names)


@cache
def of_other_engines(name: str) -> frozenset[str]:
    """Factors of other engines only."""
    of_this_engine = {factor.name for factor in ENGINES[name].FACTORS}
    return frozenset(factor.name for engine in ENGINES.values() for factor in engine.FACTORS) - of_this_engine


def factor_of(name: str, engine: str) -> Factor | None:
    """The factor as this engine defines it: engines may allow different levels."""
    plain = stream_and_factor(name)[1]
    of_engine = next((factor for factor in ENGINES[engine].FACTORS if factor.name == plain), None)
    return replace(of_engine, name=name, label=FACTORS[name].label) if of_engine else FACTORS.get(name)


# Alternatives: if a part names one, the other does not apply.
ALTERNATIVES = (*(pair for engine in ENGINES.values() for pair in engine.ALTERNATIVES), *SAME_STATE)


def by_cost(names: Iterable[str]) -> tuple[str, ...]:
    """Names sorted by cost, slowest first, then in the order of the table. Unknown names come last, alphabetically."""
    place = {name: index for index, name in enumerate(FACTORS)}
    known = sorted((n for n in names if n in FACTORS), key=lambda n: (-FACTORS[n].cost, place[stream_and_factor(n)[1]]))
    return (*known, *sorted(n for n in names if n not in FACTORS))


def closest(name: str) -> str:
    """The most similar known factor, or ""."""
    return nearest(name, FACTORS)
