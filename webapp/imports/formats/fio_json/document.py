"""The JSON objects in fio's output, decoded into the used fields.

fio 2.x names latencies `clat` and means µs, fio 3.x names them `clat_ns`. fio 2.x prints `io_bytes` in KiB
(stat.c: `io_bytes >> 10`), fio 3.x in bytes with `io_kbytes` beside it. `bw` is always KiB/s.
"""

import json
import re
from collections.abc import Sequence

import msgspec

from webapp.imports.errors import ImportRefused
from webapp.imports.values import MAX_CHARACTERS

_OBJECT = re.compile(r"^\{", re.MULTILINE)  # inner objects are indented
_NOT_JSON = re.compile(r"(:\s*)[+-]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)


class Latency(msgspec.Struct, frozen=True):
    """`percentile` and `bins` have texts as keys; fio 2.x prints unused percentiles as "0.00": 0."""

    min: float | None = None
    max: float | None = None
    mean: float | None = None
    stddev: float | None = None
    N: int | None = None
    percentile: dict[str, float | None] = {}
    bins: dict[str, int] = {}


class Flow(msgspec.Struct, frozen=True):
    """One direction of one job, or of a group of jobs."""

    io_bytes: int = 0
    io_kbytes: int | None = None
    bw_bytes: int | None = None
    bw: float | None = None
    iops: float | None = None
    runtime: int = 0  # ms
    total_ios: int | None = None
    slat_ns: Latency | None = None
    clat_ns: Latency | None = None
    lat_ns: Latency | None = None
    slat: Latency | None = None
    clat: Latency | None = None
    lat: Latency | None = None

    @property
    def active(self) -> bool:
        return bool(self.io_bytes or self.total_ios)


class Job(msgspec.Struct, frozen=True):
    """An entry of `jobs` or `client_stats`."""

    jobname: str = ""
    groupid: int | None = None  # jobs of one group run at the same time
    error: int = 0
    hostname: str = ""
    options: dict[str, str] = msgspec.field(name="job options", default={})
    read: Flow = Flow()
    write: Flow = Flow()
    trim: Flow = Flow()
    mixed: Flow = Flow()  # unified_rw_reporting
    usr_cpu: float | None = None  # percent of `job_runtime`
    sys_cpu: float | None = None
    job_runtime: int | None = None  # ms, the sum over the processes


class Document(msgspec.Struct, frozen=True):
    """One object of fio: the state at its time, cumulative since the start."""

    version: str = msgspec.field(name="fio version", default="")
    timestamp: int | None = None
    timestamp_ms: int | None = None
    global_options: dict[str, str] = msgspec.field(name="global options", default={})
    jobs: list[Job] = []
    client_stats: list[Job] = []  # of `fio --client`
    objects: int = 1  # in the text
    is_last: bool = True  # else the last object of the text is cut off, and this is the one before


def find(text: str) -> Document:
    """The last object of fio in a text that may contain other lines. Raises ImportRefused."""
    if len(text) > MAX_CHARACTERS:
        raise ImportRefused(f"The text has {len(text):,} characters, more than {MAX_CHARACTERS:,}. Split the file.")
    try:
        return _decode(text)
    except msgspec.MsgspecError:
        pass
    return _decode_last(_NOT_JSON.sub(r"\g<1>null", text))


def _decode(text: str) -> Document:
    try:
        document = msgspec.json.decode(text, type=Document)
    except RecursionError as error:
        raise ImportRefused("The JSON is nested too deeply.") from error
    except UnicodeEncodeError as error:
        raise ImportRefused("The text has characters that are not Unicode.") from error
    if not document.jobs and not document.client_stats:
        raise ImportRefused("The JSON has no `jobs` and no `client_stats`: it is not a result of fio.")
    return document


def _decode_last(text: str) -> Document:
    """The last object: with --status-interval fio prints one at each interval, and the last has the result."""
    begins = [match.start() for match in _OBJECT.finditer(text)]
    if not begins:
        raise ImportRefused("This is not a result of fio: no line begins with `{`.")
    try:
        return msgspec.structs.replace(_decode_at(text, begins), objects=len(begins))
    except RecursionError as error:
        raise ImportRefused("The JSON is nested too deeply.") from error
    except msgspec.MsgspecError as error:
        raise ImportRefused(f"This is not a result of fio: {str(error)[:200]}.") from error
    except ValueError as error:
        raise ImportRefused(f"The last JSON object is damaged or truncated: {str(error)[:200]}.") from error


def _decode_at(text: str, begins: Sequence[int]) -> Document:
    """The last object, or the one before if the last one is cut off. Raises ValueError."""
    try:
        return _decode(_object(text, begins[-1]))
    except json.JSONDecodeError:
        if len(begins) == 1:
            raise
        return msgspec.structs.replace(_decode(_object(text, begins[-2])), is_last=False)


def _object(text: str, begin: int) -> str:
    _, end = json.JSONDecoder().raw_decode(text, begin)
    return text[begin:end]
