"""A JSON object in fio's output, decoded into the used fields.

fio 2.x names latencies `clat` and means µs, fio 3.x names them `clat_ns`. fio 2.x prints `io_bytes` in KiB
(stat.c: `io_bytes >> 10`), fio 3.x in bytes with `io_kbytes` beside it. `bw` is always KiB/s.
"""

import msgspec

from webapp.imports.errors import ImportRefused


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
    elapsed: int | None = None  # s since fio began, at the time of the object
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

    @property
    def is_result(self) -> bool:
        return bool(self.jobs or self.client_stats)


def decode(text: str) -> Document:
    """One JSON object, also one that is not of fio. Raises ImportRefused and MsgspecError."""
    try:
        return msgspec.json.decode(text, type=Document)
    except RecursionError as error:
        raise ImportRefused("The JSON is nested too deeply.") from error
    except UnicodeEncodeError as error:
        raise ImportRefused("The text has characters that are not Unicode.") from error
