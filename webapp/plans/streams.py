"""Streams with different workloads that run at the same time: a reader beside a writer. Pure.

A part names its streams, each with factors of its own. In a point, the factors that any stream names have the name of
their stream; the others apply to all streams:

    streams: reader + writer      the streams of this trial
    streams_on: same              whether they share a target; only with several streams
    block_size: 4096              of both
    reader.iodepth: 32
    writer.iodepth: 8

A result of a stream has this point, and the stream's own levels under their plain names: `stream: writer`,
`beside: reader`, `iodepth: 8`. So results of streams are found and compared by the same factors as other results. A
factor of all streams that acts only on the others has their names: `writer.fdatasync: 8` in the reader's results.

A stream with a target of its own may have a layout of its own: `writer.layout`.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar
from zlib import crc32

import msgspec

from webapp.plans.document import PartStream
from webapp.plans.engines import ENGINE, engine_of, name_of
from webapp.plans.factors import (
    ALTERNATIVES,
    BESIDE,
    OF_STREAMS,
    OTHERS,
    STREAM,
    STREAMS,
    STREAMS_ON,
    by_cost,
    of_other_engines,
    stream_and_factor,
)
from webapp.plans.values import Value
from worker.contract.workload import AnyWorkload

# The streams of a part as text, one per line: `reader: pattern=randread; iodepth=1, 32`.


class StreamRefused(ValueError):
    """Invalid text of a stream; the message says what is valid."""


def lines_of(streams: Iterable[PartStream]) -> str:
    return "\n".join(
        f"{stream.name}: {'; '.join(f'{name}={stream.factors[name]}' for name in by_cost(stream.factors))}"
        for stream in streams
    )


def streams_of(text: str) -> list[dict[str, object]]:
    """The streams as JSON of `PartStream`. Raises StreamRefused."""
    return [_stream(line.strip()) for line in text.splitlines() if line.strip()]


def _stream(line: str) -> dict[str, object]:
    name, colon, rest = line.partition(":")
    if not colon:
        raise StreamRefused(f"`{line}` is not a stream; write it like `reader: pattern=randread; iodepth=1, 32`.")
    factors = {}
    for text in filter(str.strip, rest.split(";")):
        factor, equals, levels = (piece.strip() for piece in text.partition("="))
        if not equals or not factor or not levels:
            raise StreamRefused(f"`{text.strip()}` is not a factor with levels; write it like `iodepth=1, 32`.")
        if factor in factors:
            raise StreamRefused(f"The stream {name.strip()} has `{factor}` twice. Remove one of them.")
        factors[factor] = levels
    return {"name": name.strip(), "factors": factors}


Point = Mapping[str, Value]
T = TypeVar("T")

TOGETHER, ALONE = "together", "alone"
EACH = "each"  # level of `streams_on`
OF_TRIALS = frozenset({STREAMS, STREAMS_ON, OTHERS})  # factors that say which streams run together
_SEEDS = 1000  # distance of the seeds of two streams, above the number of repeats


def names_of(point: Mapping[str, object]) -> tuple[str, ...]:
    """The names of the streams of a trial at this point; () if its streams have no names."""
    names = point.get(STREAMS)
    return tuple(names.split(BESIDE)) if isinstance(names, str) else ()


def own_point(point: Mapping[str, T], stream: str) -> dict[str, T]:
    """The point of one stream by itself, with plain names: its own levels, and those of all streams that apply to it.

    Factors of the host, such as settings, stay.
    """
    levels = of_stream(point, stream, str(point.get(f"{stream}.{ENGINE}", name_of(point))))
    silent = engine_of(levels).silent(levels)
    return {name: value for name, value in levels.items() if name not in silent}


def of_stream(factors: Mapping[str, T], stream: str, engine: str) -> dict[str, T]:
    """The factors that apply to one stream, with plain names; `engine` is the name of its engine."""
    of_this_stream = named_levels(factors, stream)
    shared = {name: value for name, value in named_levels(factors, "").items() if name not in (STREAMS, STREAMS_ON)}
    left_out = overruled(of_this_stream) | of_other_engines(engine)
    return {name: value for name, value in (shared | of_this_stream).items() if name not in left_out}


def named_levels(point: Mapping[str, T], stream: str) -> dict[str, T]:
    """The levels that a point has in the name of this stream, with plain names."""
    return {plain_name: point[name] for name, plain_name in _named(tuple(point), stream)}


@lru_cache(maxsize=1024)  # the points of a part have the same names
def _named(names: tuple[str, ...], stream: str) -> tuple[tuple[str, str], ...]:
    split = ((name, *stream_and_factor(name)) for name in names)
    return tuple((name, plain_name) for name, of_stream, plain_name in split if of_stream == stream)


def overruled(factors: Mapping[str, object]) -> frozenset[str]:
    """Factors that do not apply to a stream because it has an alternative of its own: a time if it has an amount."""
    pairs = [*ALTERNATIVES, *(pair[::-1] for pair in ALTERNATIVES)]
    return frozenset(other for present, other in pairs if present in factors and other not in factors)


def applicable(point: Point) -> dict[str, Value]:
    """The point of a trial with streams, without factors of other streams and factors without effect."""
    names = names_of(point)
    used = {name: own_point(point, name).keys() for name in names}

    def applies(name: str) -> bool:
        stream, plain_name = stream_and_factor(name)
        if stream:
            return stream in used and plain_name in used[stream]
        if name == STREAMS_ON:
            return len(names) > 1
        return name not in OF_STREAMS or any(name in levels for levels in used.values())

    return {name: value for name, value in point.items() if applies(name)}


def result_point(point: Point, stream: str) -> dict[str, Value]:
    """The point of the results of one stream of a trial."""
    of_trial = {name: level for name, level in point.items() if stream_and_factor(name)[0]}
    of_trial |= {name: point[name] for name in (STREAMS, STREAMS_ON) if name in point}
    levels, others = own_point(point, stream), [name for name in names_of(point) if name != stream]
    for other in others:  # factors of all streams that have no effect on this one
        shared = {name: level for name, level in own_point(point, other).items() if name in OF_STREAMS}
        of_trial |= {f"{other}.{name}": level for name, level in shared.items() if name not in levels}
    return levels | of_trial | {STREAM: stream, OTHERS: BESIDE.join(others) or ALONE}


def alone_point(point: Point) -> dict[str, Value]:
    """The point of the same stream by itself, from that of its result beside other streams."""
    stream = str(point[STREAM])
    levels = {name: level for name, level in point.items() if stream_and_factor(name)[0] in ("", stream)}
    levels.pop(STREAMS_ON, None)
    return levels | {STREAMS: stream, OTHERS: ALONE}


def workloads_of(point: Point, *, seed: int) -> tuple[AnyWorkload, ...]:
    """The workload of each named stream, in order; each stream has its own random offsets and data.

    Raises msgspec.ValidationError with the name of the stream.
    """
    return tuple(_workload(point, name, seed) for name in names_of(point))


def _workload(point: Point, stream: str, seed: int) -> AnyWorkload:
    stream_point = own_point(point, stream)
    try:
        return engine_of(stream_point).workload(stream_point, seed=stream_seed(stream, seed))
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"Stream {stream}: {error}") from error


def stream_seed(stream: str, repeat: int) -> int:
    """Different for the streams of a trial, the same for a stream alone and beside others."""
    return repeat + _SEEDS * crc32(stream.encode())
