"""What the address of Rankings asks, and the use cases. Every choice has a default, and a choice that nobody measured
has a nearest one.

/rankings/?rank=drive&pattern=randread&block_size=4096&iodepth=1&numjobs=1&host=storage1&use=database&weight=30&weight=…
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from webapp.bench.rankings.catalogue import Catalogue, Filter, Load, Origins
from webapp.bench.workloads import CHOICES as OF_BENCH
from webapp.bench.workloads import RATE, chart_order, is_random
from webapp.core.errors import Refusal, read_number
from webapp.core.formatting import latency
from worker.contract.workload import KIB, Pattern

# Use cases: what they ask of a drive, and how much each part counts.
#
# The weights are our convention, not measurements of an application: the page shows them, and its address can change
# them. A part names a range of workloads; a ranking takes the one of them that most of its drives have, so that all
# drives are judged by the same workloads.
#
# - Database: small random reads and writes. Commits and index look-ups wait for single requests, background work keeps
#   many in flight.
# - Log writes: small writes one after another, each of which somebody waits for; few random writes beside them.
# - Virtual machines: guests mix their requests, so reads and writes are random and many are in flight.
# - Backup: large sequential transfers, mostly to the drive; reading is the restore.
# - Streaming: large sequential reads, alone and with many readers.

_SMALL = (4 * KIB, 16 * KIB)
_LARGE = (128 * KIB, 4096 * KIB)


@dataclass(frozen=True)
class Part:
    """A workload of a use case. Ranges include both ends."""

    label: str
    pattern: Pattern
    blocks: tuple[int, int]  # bytes
    in_flight: tuple[int, int]
    usual: tuple[int, int]  # block size and requests in flight of the workload that is taken first

    def fits(self, load: Load) -> bool:
        return (
            load.pattern is self.pattern
            and self.blocks[0] <= load.block_size <= self.blocks[1]
            and self.in_flight[0] <= load.in_flight <= self.in_flight[1]
        )


@dataclass(frozen=True)
class UseCase:
    key: str
    label: str
    parts: tuple[Part, ...]
    weights: tuple[int, ...]  # of the parts


def _small(label: str, pattern: Pattern, *, many: bool = False) -> Part:
    flight = (16, 64) if many else (1, 1)
    return Part(label, pattern, _SMALL, flight, (4 * KIB, 32 if many else 1))


def _large(label: str, pattern: Pattern, flight: tuple[int, int] = (1, 64)) -> Part:
    return Part(label, pattern, _LARGE, flight, (1024 * KIB, flight[0]))


_READ, _WRITE = Pattern.RANDREAD, Pattern.RANDWRITE
_RANDOM = (
    _small("Random read, 1 in flight", _READ),
    _small("Random read, 32 in flight", _READ, many=True),
    _small("Random write, 1 in flight", _WRITE),
    _small("Random write, 32 in flight", _WRITE, many=True),
)
_ALL = (
    UseCase("database", "Database", _RANDOM, (30, 25, 30, 15)),
    UseCase(
        "log", "Log writes",
        (_small("Sequential small write, 1 in flight", Pattern.WRITE), _small("Random write, 1 in flight", _WRITE)),
        (80, 20),
    ),
    UseCase("machines", "Virtual machines", _RANDOM, (20, 30, 20, 30)),
    UseCase(
        "backup", "Backup",
        (_large("Sequential large write", Pattern.WRITE), _large("Sequential large read", Pattern.READ)),
        (70, 30),
    ),
    UseCase(
        "streaming", "Streaming",
        (
            _large("Sequential large read, 1 in flight", Pattern.READ, (1, 1)),
            _large("Sequential large read, many in flight", Pattern.READ, (8, 64)),
        ),
        (50, 50),
    ),
)  # fmt: skip
USE_CASES: Mapping[str, UseCase] = {use_case.key: use_case for use_case in _ALL}


Choice = TypeVar("Choice", bound=StrEnum)
MAX_TEXT, MAX_VALUES = 300, 100  # characters of a name in a filter; names of one kind
MAX_WEIGHT = 100
_USUAL_BLOCK = {True: 4 * KIB, False: 1024 * KIB}  # of random patterns, and of sequential ones
_MAX_LEVEL = 2**31
LIMITS_NS = {"within_100us": 100_000.0, "within_1ms": 1_000_000.0, "within_10ms": 10_000_000.0}  # of the mean p99
CHOICES = OF_BENCH | {key: f"Load with p99 up to {latency(limit)}" for key, limit in LIMITS_NS.items()}


class RankingRefused(Refusal):
    """The address of the page cannot be answered."""


class Ranked(StrEnum):
    DRIVE = "drive"
    CONTROLLER = "controller"
    HOST = "host"
    LAYOUT = "layout"


@dataclass(frozen=True)
class Question:
    ranked: Ranked = Ranked.DRIVE
    wanted: Mapping[str, int | str] = field(default_factory=dict)  # chosen fields of `Load`
    metric: str = RATE  # key of CHOICES
    across_hosts: bool = False  # values of different hosts are in one ranking
    filter: Filter = field(default_factory=Filter)
    use_case: UseCase = USE_CASES["database"]
    weights: tuple[int, ...] = USE_CASES["database"].weights
    base: str = ""  # the product with the score 100; the best without it

    @property
    def limit_ns(self) -> float | None:
        """Of the p99 latency, if the highest load within it is ranked."""
        return LIMITS_NS.get(self.metric)


KEYS = ("rank", "pattern", "block_size", "iodepth", "numjobs", "metric", "hosts", "source", "use", "base")
LISTS = ("model", "controller", "layout", "host", "tool", "weight")


def read_question(single: Mapping[str, str], several: Mapping[str, Sequence[str]]) -> Question:
    """`single` has the values of KEYS, `several` those of LISTS. "" is no choice. Raises RankingRefused."""
    names = {key: _names(key, several.get(key, ())) for key in LISTS if key != "weight"}
    use_case = USE_CASES[_one_of("use", single, tuple(USE_CASES)) or "database"]
    return Question(
        ranked=Ranked(_one_of("rank", single, tuple(Ranked)) or Ranked.DRIVE),
        wanted=_wanted(single),
        metric=_one_of("metric", single, tuple(CHOICES)) or RATE,
        across_hosts=_one_of("hosts", single, ("apart", "together")) == "together",
        filter=Filter(
            models=names["model"], controllers=names["controller"], layouts=names["layout"], hosts=names["host"],
            tools=names["tool"], origins=Origins(_one_of("source", single, tuple(Origins)) or Origins.ALL),
        ),
        use_case=use_case,
        weights=_weights(several.get("weight", ()), use_case),
        base=_text("base", single.get("base", "")),
    )  # fmt: skip


def _one_of(key: str, single: Mapping[str, str], known: Sequence[str]) -> str:
    text = single.get(key, "")
    if text and text not in known:
        raise RankingRefused("ranking_value_unknown", f"{key}={text[:MAX_TEXT]} is unknown. Use {', '.join(known)}.")
    return text


def _wanted(single: Mapping[str, str]) -> dict[str, int | str]:
    pattern = _one_of("pattern", single, tuple(Pattern))
    numbers = {key: single[key] for key in ("block_size", "iodepth", "numjobs") if single.get(key)}
    levels = {key: read_number(key, text, low=1, high=_MAX_LEVEL) for key, text in numbers.items()}
    return ({"pattern": pattern} if pattern else {}) | levels


def _names(key: str, texts: Sequence[str]) -> frozenset[str]:
    if len(texts) > MAX_VALUES:
        raise RankingRefused("ranking_value_unknown", f"{key}: choose at most {MAX_VALUES}.")
    return frozenset(_text(key, text) for text in texts if text)


def _text(key: str, text: str) -> str:
    if len(text) > MAX_TEXT or "\0" in text:
        raise RankingRefused("ranking_value_unknown", f"{key}: nothing has this name.")
    return text


def _weights(texts: Sequence[str], use_case: UseCase) -> tuple[int, ...]:
    if not texts:
        return use_case.weights
    if len(texts) != len(use_case.parts):
        message = f"weight: {use_case.label} has {len(use_case.parts)} weights, not {len(texts)}."
        raise RankingRefused("ranking_weights", message)
    weights = tuple(read_number("weight", text, high=MAX_WEIGHT) for text in texts)
    if not any(weights):
        raise RankingRefused("ranking_weights", "weight: at least one weight must be above 0.")
    return weights


def chosen_load(question: Question, catalogue: Catalogue) -> Load | None:
    """The chosen load, or the nearest one that was measured. What is not chosen is what the most comparable drives
    have, own ones first; then what most drives have. None if nothing was measured."""
    loads = list(catalogue.counts)
    for name in ("pattern", "block_size"):
        loads = _nearest(loads, name, question.wanted)
    if "iodepth" in question.wanted or "numjobs" in question.wanted:
        depth, jobs = int(question.wanted.get("iodepth", 1)), int(question.wanted.get("numjobs", 1))
        loads = _closest(loads, depth, jobs)
    is_of_drives = question.ranked in (Ranked.DRIVE, Ranked.LAYOUT)
    alike = catalogue.most_alike(across_hosts=question.across_hosts) if is_of_drives else {}

    def order(load: Load) -> tuple[float, ...]:
        own_drives, all_drives = alike.get(load, (0, 0))
        return -own_drives, -all_drives, -catalogue.counts[load], *_usual(load)

    return min(loads, key=order, default=None)


def _nearest(loads: Sequence[Load], name: str, wanted: Mapping[str, int | str]) -> list[Load]:
    """The loads with the wanted level; those with the nearest number if there are none; all without a wish."""
    if name not in wanted:
        return list(loads)
    exact = [load for load in loads if getattr(load, name) == wanted[name]]
    level = wanted[name]
    if exact or isinstance(level, str):
        return exact
    gaps = {load: abs(math.log(getattr(load, name) / level)) for load in loads}
    return [load for load, gap in gaps.items() if gap == min(gaps.values())]


def _closest(loads: Sequence[Load], depth: int, jobs: int) -> list[Load]:
    """The loads with the nearest queue depth and number of jobs; of equal ones, those with as many in flight."""
    gaps = {
        load: (
            round(abs(math.log(load.iodepth / depth)) + abs(math.log(load.numjobs / jobs)), 9),
            round(abs(math.log(load.in_flight / (depth * jobs))), 9),
        )
        for load in loads
    }
    nearest = min(gaps.values(), default=None)
    return [load for load, gap in gaps.items() if gap == nearest]


def _usual(load: Load) -> tuple[float, ...]:
    """Sorts the loads that reviews show first to the front."""
    usual = _USUAL_BLOCK[is_random(load.pattern)]
    return chart_order(load.pattern), abs(math.log(load.block_size / usual)), load.in_flight, load.numjobs
