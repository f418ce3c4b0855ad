"""The conditions that all compared points share. A page states them once, and not in each label."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from webapp.analysis.equals import BLOCK, DEPTH, JOBS, PATTERN
from webapp.plans.engines import engine_of
from webapp.plans.factors import FACTORS
from webapp.plans.values import Value
from worker.contract.workload import Sync

_STATED = (PATTERN, BLOCK, DEPTH, JOBS, "ioengine", "direct", "sync", "size", "runtime", "prefill")
_WORDS: Mapping[str, Mapping[Value, str]] = {
    "direct": {True: "direct", False: "buffered"},
    "sync": {Sync.NONE.value: ""},
    "prefill": {True: "written first", False: ""},
}


def same_for_all(points: Sequence[Mapping[str, Value]], named: Collection[str] = ()) -> Iterator[str]:
    """`4 KiB`, `QD 32`, `libaio`, `direct`, `60 s`: the main factors that all points state with one level, without
    those in `named`. A count of 1 job is not said."""
    first, *others = points or [{}]
    names = [name for name in _STATED if name in first and name not in named]
    shared = [name for name in names if all(point.get(name) == first[name] for point in others)]
    yield from filter(None, [_words(name, first[name], first) for name in shared])


def _words(name: str, level: Value, point: Mapping[str, Value]) -> str:
    if level in _WORDS.get(name, {}):
        return _WORDS[name][level]
    text = engine_of(point).NAMED_BY.get(name, "{}" if name == "runtime" else f"{FACTORS[name].label} {{}}")
    return "" if text.endswith("s") and level == 1 else text.format(FACTORS[name].format(level))
