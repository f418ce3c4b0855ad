"""The factor `load` in the points of a part: maxima, and reasons against the factor. Pure.

Streams may have loads of their own: `reader.load` and `writer.load`. Each refers to the maximum of its stream alone, so
these trials are added, and streams together run at shares only.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines import ENGINES
from webapp.plans.factors import STREAMS, FactorKind, stream_and_factor
from webapp.plans.load import LOAD, MAX, LoadShare, is_load
from webapp.plans.points import Point, applicable
from webapp.plans.streams import named_levels, names_of
from webapp.plans.values import Value
from worker.contract.workload import Pattern
from worker.recipes import DEFAULT_ENGINE

_OPTIONS = frozenset(factor.name for factor in ENGINES[DEFAULT_ENGINE].FACTORS if factor.kind is FactorKind.OPTION)
# Factors with another level than this one change what several jobs of depth 1 do, or limit the rate themselves.
_ONLY: Mapping[str, Value] = {
    "fsync_every": 0, "sqthread_poll": False, "hipri": False, "at_once": 1, "hosts_at_once": 1, "rw_sequencer": None,
}  # fmt: skip
_ALLOWED_OPTIONS = frozenset({
    LOAD, "write_block_size", "run_length", "offset", "offset_percent", "blockalign", "file_service_type", "openfiles",
    "pre_read", "invalidate", "fadvise_hint", "force_async", "userspace_reap", "dedupe_percentage", "dedupe_mode",
    "dedupe_working_set_percentage", "buffer_compress_percentage", "buffer_compress_chunk", "buffer_pattern",
})  # fmt: skip
_PATTERNS = frozenset(pattern.value for pattern in Pattern if pattern.random and not pattern.trims)


def load_problems(
    document: PlanDocument, part: Part, levels: Mapping[str, Sequence[Value]]
) -> Iterator[tuple[str, str]]:
    """Factor and message of each reason against `load` in this part."""
    named = [name for name in levels if is_load(name)]
    if not named:
        return
    if part.streams and LOAD in levels:
        yield LOAD, "`load` is a factor of each stream here. Move it to the streams."
        return
    if document.spread_percent or document.decide_percent:
        yield LOAD, "`load` needs all its trials: remove it, or `spread_percent` and `decide_percent`."
    if any(LOAD in re.findall(r"\w+", rule) for rule in part.rules):
        yield LOAD, "every point needs its `max` trials, so rules cannot name `load`. Remove it from the rules."
    for name in named:
        stream = stream_and_factor(name)[0]
        if stream and set(levels[name]) <= {MAX}:
            yield name, "`load` of a stream needs a share, such as `50%`: `max` is added to the shares."
        prefix, of_stream = name.removesuffix(LOAD), {**levels, **named_levels(levels, stream)} if stream else levels
        for factor, text in _workload_problems(of_stream):
            yield (f"{prefix}{factor}" if f"{prefix}{factor}" in levels else factor), text


def _workload_problems(levels: Mapping[str, Sequence[Value]]) -> Iterator[tuple[str, str]]:
    """Of a part, or of one of its streams with plain names."""
    if any(str(pattern) not in _PATTERNS for pattern in levels.get("pattern", ())):
        yield LOAD, "`load` needs a random pattern: a share runs as many jobs, which would not read in order."
    for name in ("amount", "passes", "stop", "block_split", "block_range", "cpus_policy"):
        if name in levels:
            yield name, f"`{name}` cannot be used with `load`; remove one of them."
    for name in sorted((_OPTIONS - _ALLOWED_OPTIONS) & levels.keys()):
        yield name, f"`{name}` cannot be used with `load`: it would change how I/Os arrive. Remove one of them."
    for name, only in _ONLY.items():
        if any(level != only for level in levels.get(name, ())):
            yield name, f"`{name}` cannot be used with `load`; remove one of them."


def with_maxima(part: Part, levels: Mapping[str, Sequence[Value]]) -> tuple[Part, dict[str, tuple[Value, ...]]]:
    """The part and its levels with the maxima of its loads. Of streams: each one alone at its maximum, too; together,
    all are at shares."""
    full = {name: tuple(dict.fromkeys([*each, *([MAX] if is_load(name) else [])])) for name, each in levels.items()}
    loaded = [stream.name for stream in part.streams if f"{stream.name}.{LOAD}" in full]
    if not loaded:
        return part, full
    wanted = full.get(STREAMS, ())
    rules = []
    for stream in loaded:
        name = f"{stream}.{LOAD}"
        together = [
            streams for streams in map(str, wanted) if stream in names_of({STREAMS: streams}) and streams != stream
        ]
        rules += [f"except streams={','.join(together)}; {name}=max"] if together else []
        if stream not in wanted:
            shares = ",".join(LoadShare().write(share) for share in levels[name] if share != MAX)
            rules.append(f"except streams={stream}; {name}={shares}")
    full[STREAMS] = tuple(dict.fromkeys([*wanted, *loaded]))
    return replace(part, rules=(*part.rules, *rules)), full


def shares_of(point: Point) -> Iterator[tuple[int, str, int]]:
    """Number, name and percent of each stream at a share; the name is "" in a point without named streams."""
    for number, stream in enumerate(names_of(point) or ("",)):
        percent = point.get(f"{stream}.{LOAD}" if stream else LOAD, MAX)
        if percent != MAX:
            yield number, stream, int(percent or 0)


def at_maximum(point: Point, stream: str) -> Point:
    """Of the trial whose IOPS the share of this stream refers to."""
    if not stream:
        return {**point, LOAD: MAX}
    return applicable({**point, STREAMS: stream, f"{stream}.{LOAD}": MAX})
