"""Further options of fio, under fio's names. Units: bytes, bytes/s, µs.

A new option needs a field here and a factor in `webapp.plans.engines.fio_options`. The recipe renders the field, and
job files read it. Options that name files, start programs or leave the target must not become fields.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.base import FileBytes, Message

DISTRIBUTION = r"random|zipf:[0-9]{1,3}(\.[0-9]{1,6})?|pareto:0?\.[0-9]{1,6}|normal:[0-9]{1,2}(\.[0-9]{1,6})?"
ZONES = r"zoned:[0-9]{1,3}/[0-9]{1,3}(:[0-9]{1,3}/[0-9]{1,3}){0,63}"  # share of the I/Os / share of the size, in %
HEX = r"0x([0-9a-fA-F]{2}){1,64}"  # fio also reads file names here: they stay out
SYNC_FILE_RANGE = r"(write|wait_before|wait_after)(\+(write|wait_before|wait_after)){0,2}:[0-9]{1,9}"
PERCENTILE = r"[0-9]{1,2}(\.[0-9]{1,6})?|100"
SERVICE = (
    r"(random|roundrobin|sequential)(:[0-9]{1,6})?|zipf:[0-9]{1,3}\.[0-9]{1,6}|pareto:0?\.[0-9]{1,6}|normal:[0-9]{1,2}"
)

WRITE_LIMITS = {"rate": "write_rate", "rate_iops": "write_rate_iops"}  # limit of reads and writes -> of writes only
RATE_LIMITS = (*WRITE_LIMITS, *WRITE_LIMITS.values())
# Options with two values in fio: of reads and writes -> of writes only
WRITE_VALUES = WRITE_LIMITS | {"percentage_random": "write_percentage_random"}


class RwSequencer(StrEnum):
    """Offsets of the I/Os between two random offsets."""

    SEQUENTIAL = "sequential"
    IDENTICAL = "identical"


class FadviseHint(StrEnum):
    """Hints about the order of accesses that fio gives the kernel for buffered I/O."""

    NONE = "0"
    PATTERN = "1"  # random or sequential, as the pattern: fio's default
    SEQUENTIAL = "sequential"
    RANDOM = "random"


class RateProcess(StrEnum):
    LINEAR = "linear"
    POISSON = "poisson"


class SubmitMode(StrEnum):
    INLINE = "inline"
    OFFLOAD = "offload"


class DedupeMode(StrEnum):
    REPEAT = "repeat"
    WORKING_SET = "working_set"


class Verify(StrEnum):
    """Checksum in each written block."""

    CRC32C = "crc32c"
    CRC32 = "crc32"
    CRC64 = "crc64"
    CRC16 = "crc16"
    CRC7 = "crc7"
    MD5 = "md5"
    SHA1 = "sha1"
    SHA256 = "sha256"
    SHA512 = "sha512"
    XXHASH = "xxhash"
    META = "meta"
    PATTERN = "pattern"


Percent = Annotated[int, Meta(ge=0, le=100)]
Number = Annotated[int, Meta(ge=1, le=2**31)]
Depth = Annotated[int, Meta(ge=1, le=4096)]
Rate = Annotated[int, Meta(ge=1, le=2**50)]  # bytes/s of each job and direction
Iops = Annotated[int, Meta(ge=1, le=2**31)]  # of each job and direction
Microseconds = Annotated[int, Meta(ge=1, le=86_400_000_000)]


class FioOptions(Message, frozen=True, kw_only=True, omit_defaults=True):
    """None: the option is not in the job."""

    # Offsets
    offset: Annotated[int, Meta(ge=0, le=2**60, multiple_of=512)] | None = None  # where the used part starts
    # Between the starts of two jobs; 0: all sequential jobs start at the same offset, instead of dividing the size.
    offset_increment: Annotated[int, Meta(ge=0, le=2**60, multiple_of=512)] | None = None
    blockalign: FileBytes | None = None
    random_distribution: Annotated[str, Meta(max_length=500, pattern=rf"^({DISTRIBUTION}|{ZONES})\Z")] | None = None
    norandommap: bool | None = None  # off: every block is visited once before any is visited twice
    percentage_random: Percent | None = None
    write_percentage_random: Percent | None = None  # of writes; `percentage_random` is then of reads
    rw_sequencer: RwSequencer | None = None
    file_service_type: Annotated[str, Meta(pattern=rf"^({SERVICE})\Z")] | None = None
    own_files: bool | None = None  # each job uses one of the files; there are as many files as jobs
    openfiles: Number | None = None
    pre_read: bool | None = None
    invalidate: bool | None = None  # drops the used files from the page cache when they are opened; fio's default is on
    fadvise_hint: FadviseHint | None = None  # None: no hints
    # Limits
    rate: Rate | None = None
    write_rate: Rate | None = None  # of writes; `rate` is then of reads
    rate_iops: Iops | None = None
    write_rate_iops: Iops | None = None
    rate_process: RateProcess | None = None
    rate_ignore_thinktime: bool | None = None
    thinktime: Microseconds | None = None
    thinktime_spin: Microseconds | None = None
    thinktime_blocks: Number | None = None
    thinktime_iotime: Microseconds | None = None
    latency_target: Microseconds | None = None
    latency_window: Microseconds | None = None
    latency_percentile: Annotated[str, Meta(pattern=rf"^({PERCENTILE})\Z")] | None = None
    latency_run: bool | None = None
    max_latency: Microseconds | None = None
    # Queue
    iodepth_batch: Depth | None = None
    iodepth_batch_complete_min: Depth | None = None
    iodepth_batch_complete_max: Depth | None = None
    iodepth_low: Depth | None = None
    serialize_overlap: bool | None = None
    io_submit_mode: SubmitMode | None = None
    force_async: Number | None = None  # io_uring
    sqthread_poll_cpu: Annotated[int, Meta(ge=0, le=99_999)] | None = None  # io_uring
    userspace_reap: bool | None = None  # libaio
    # Synchronisation
    fdatasync: Number | None = None  # after this number of writes
    fsync_on_close: bool | None = None
    sync_file_range: Annotated[str, Meta(pattern=rf"^({SYNC_FILE_RANGE})\Z")] | None = None
    # Data
    dedupe_percentage: Percent | None = None
    dedupe_mode: DedupeMode | None = None
    dedupe_working_set_percentage: Percent | None = None
    buffer_compress_percentage: Percent | None = None
    buffer_compress_chunk: FileBytes | None = None
    buffer_pattern: Annotated[str, Meta(pattern=rf"^({HEX})\Z")] | None = None
    # Verification
    verify: Verify | None = None
    verify_pattern: Annotated[str, Meta(pattern=rf"^({HEX})\Z")] | None = None
    verify_interval: FileBytes | None = None
    verify_backlog: Number | None = None  # blocks written before they are read back
    verify_backlog_batch: Number | None = None
    verify_async: Annotated[int, Meta(ge=1, le=64)] | None = None  # threads
    verify_fatal: bool | None = None

    @property
    def limits_rate(self) -> bool:
        return not self.wanted().keys().isdisjoint(RATE_LIMITS)

    def wanted(self) -> dict[str, object]:
        """Name and value of every option in use."""
        if self == _NONE:  # most workloads, of which a long plan has thousands
            return {}
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in values if value is not None}


_NONE = FioOptions()
