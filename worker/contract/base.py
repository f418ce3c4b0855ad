"""What all messages share: strict structs, limits, versions, common shapes, and the base of engines' workloads."""

from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, ClassVar, Self, TypeVar

import msgspec
from msgspec import Meta

CONTRACT_VERSION = 2
OLDEST_UNDERSTOOD = 2

MAX_ORDER_BYTES = 256 * 1024
MAX_REPORT_BYTES = 16 * 1024 * 1024
MAX_ENROL_BYTES = 64 * 1024
MAX_HELLO_BYTES = 4 * 1024 * 1024


class Failed(Exception):
    """Work that could not be done, with a code of docs/reference/message-contract.md and a message for people.

    A subclass exists where a caller handles one kind of failure. Any other exception is a fault of the worker.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ContractError(ValueError):
    """A message that violates the contract. `code` is for programs, the text for people."""

    code = "bad_message"


class TooLarge(ContractError):
    code = "too_large"


class VersionMismatch(ContractError):
    code = "version_mismatch"


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base class of all messages and their parts."""


class _Version(msgspec.Struct, frozen=True):
    version: int


# Shapes used by many messages.
Id = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[0-9a-zA-Z_.-]+\Z")]
Name = Annotated[str, Meta(min_length=1, max_length=100)]
Text = Annotated[str, Meta(max_length=2000)]
LongText = Annotated[str, Meta(max_length=64 * 1024)]
Path = Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^/[^\x00-\x1f]*\Z")]
# One process of a worker with a state directory of its own; "" if the sender has none, such as `doctor`.
Session = Annotated[str, Meta(max_length=64)]
EarlierSessions = Annotated[tuple[Session, ...], Meta(max_length=32)]  # of workers with the same state directory
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
SmallCount = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Number = Annotated[float, Meta(ge=0)]
Time = Annotated[float, Meta(ge=0, le=32_503_680_000)]  # Unix time, s, before the year 3000

M = TypeVar("M", bound=Message)


def encode(message: Message) -> bytes:
    """The canonical JSON text of a message."""
    return msgspec.json.encode(message, order="deterministic")


def decode(data: bytes | str, kind: type[M], *, limit: int) -> M:
    """Read one message that carries a `version`; raises ContractError with a sentence that says what to do.

    The version is checked first, so a message of a newer contract is refused
    for its version and not for its first unknown field.
    """
    raw = as_bytes(data, kind.__name__)
    if len(raw) > limit:
        raise TooLarge(f"{kind.__name__} of {len(raw)} bytes is over the limit of {limit} bytes.")
    try:
        check_version(msgspec.json.decode(raw, type=_Version).version, kind.__name__)
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        raise ContractError(f"{kind.__name__} could not be read: {error}") from error
    except UnicodeDecodeError as error:
        raise ContractError(f"{kind.__name__} is not JSON text: it is not UTF-8.") from error
    except RecursionError as error:
        raise ContractError(f"{kind.__name__} is not JSON text: it is nested too deeply.") from error


def is_id(text: str) -> bool:
    try:
        msgspec.convert(text, Id)
    except msgspec.ValidationError:
        return False
    return True


def as_bytes(data: bytes | str, what: str) -> bytes:
    """Text as bytes. JSON can contain half of a surrogate pair, which cannot be encoded: a ContractError."""
    try:
        return data.encode() if isinstance(data, str) else data
    except UnicodeEncodeError as error:
        raise ContractError(f"{what} is not JSON text: it has an unpaired surrogate.") from error


def check_version(version: int, what: str) -> None:
    """Refuse a version that this side does not support, and say which side needs an upgrade."""
    if OLDEST_UNDERSTOOD <= version <= CONTRACT_VERSION:
        return
    older = "the sender" if version < OLDEST_UNDERSTOOD else "this side"
    raise VersionMismatch(
        f"{what} is of contract version {version}; this side understands "
        f"{OLDEST_UNDERSTOOD} to {CONTRACT_VERSION}. Upgrade {older}."
    )


def common_version(*, oldest: int, newest: int) -> int:
    """The newest contract version that both this side and a peer (oldest to newest) support."""
    version = min(newest, CONTRACT_VERSION)
    if version < max(oldest, OLDEST_UNDERSTOOD):
        raise VersionMismatch(
            f"The peer speaks contract versions {oldest} to {newest}, this side "
            f"{OLDEST_UNDERSTOOD} to {CONTRACT_VERSION}: there is none in common. "
            f"Upgrade {'the peer' if newest < OLDEST_UNDERSTOOD else 'this side'}."
        )
    return version


# Maximum lengths of texts in the contract, in characters. Longer texts are cut off.

MAX_LABEL = 200
MAX_TEXT = 2000


# msgspec examines a type when it is first used, without a lock: two threads that do so at the same time crash Python.
#
# The second thread finds what the first has only begun to fill in (msgspec 0.22, `StructInfo_Convert`), and the
# process ends with SIGSEGV. So a process with threads examines all its types before it starts them.


def examine_types() -> int:
    """Examine all structs of the modules loaded so far; the number of structs. Call before threads start."""
    kinds = set(_subclasses(msgspec.Struct))
    for kind in kinds:
        with suppress(TypeError):  # it has a field that msgspec cannot decode, so nothing decodes it
            msgspec.json.Decoder(kind)
    return len(kinds)


def _subclasses(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


class TargetKind(StrEnum):
    BLOCK = "block"
    DIRECTORY = "directory"
    FILE = "file"
    POOL = "pool"  # drives for layouts; in a policy, never in a stream
    SLOT = "slot"  # a drive that only its RAID controller sees, for virtual drives; never in a stream


# The common part of all engines' workloads: what they need from a target, and what they do to it.
#
# The guard, previews and estimates use only these fields and properties. Units are bytes and seconds.

KIB = 1024
MIB = 1024 * KIB

FileBytes = Annotated[int, Meta(ge=512, le=2**60, multiple_of=512)]


class Buffers(StrEnum):
    """Content of the written data."""

    INCOMPRESSIBLE = "incompressible"  # random, all blocks different: fio's scramble_buffers
    REFILLED = "refilled"  # new random data for every I/O; generating it takes so long that fast drives look slower
    REPEATED = "repeated"  # the same random buffer for all blocks; a drive may deduplicate it
    ZEROES = "zeroes"


class Workload(Message, tag_field="engine", frozen=True, kw_only=True):
    """Base of the engines' workloads; `recipes.workload_problems` checks what the types cannot."""

    does_io: ClassVar[bool] = True  # if not, its result has no I/Os, no bytes and no latencies
    needs_array: ClassVar[bool] = False  # it acts on the only md array of a layout, beside other streams
    size_bytes: FileBytes | None = None  # of each file, or of the used part of a device; None: the whole device
    files: Annotated[int, Meta(ge=1, le=1024)] = 1  # directories only
    prefill: bool = True  # files are written completely before their first use
    buffers: Buffers = Buffers.INCOMPRESSIBLE
    seed: Annotated[int, Meta(ge=0, le=2**53)] = 1  # for random offsets and data

    @classmethod
    def engine_name(cls) -> str:
        """The engine's name in the contract."""
        return str(cls.__struct_config__.tag)

    @property
    def engine(self) -> str:
        return self.engine_name()

    @property
    def direct(self) -> bool:
        """Whether it moves data past the page cache."""
        return False

    @property
    def writes(self) -> bool:
        """Whether it overwrites a block device or an existing file."""
        raise NotImplementedError

    @property
    def reads(self) -> bool:
        """Whether it reads data that was there before."""
        return self.write_share < 1

    @property
    def uniform(self) -> bool:
        """Whether a constant speed from start to end is expected, so that any change is worth a warning."""
        return True

    @property
    def is_counted(self) -> bool:
        """Whether the kernel's counters of the device contain its I/O."""
        return True

    @property
    def creates_files(self) -> bool:
        """Whether it writes new files in a directory, so that those of earlier trials must not be there."""
        return self.writes and not self.reads and not self.prefill

    @property
    def replaces_member(self) -> bool:
        """Whether it rebuilds a member of the array, so that no later trial may use the layout."""
        return False

    @property
    def needs_reflinks(self) -> bool:
        """Whether the file system must be able to share blocks between files."""
        return False

    @property
    def words(self) -> str:
        """A short name of the work: `randwrite`, `file copy`."""
        raise NotImplementedError

    @property
    def random(self) -> bool:
        return False

    @property
    def writes_in_order(self) -> bool:
        """Whether it only writes, each block once, from the first to the last."""
        return False

    @property
    def write_share(self) -> float:
        """The written share of all moved bytes, 0 to 1."""
        raise NotImplementedError

    @property
    def moved_bytes(self) -> int | None:
        """Total bytes read and written; None if a time limits it."""
        return None

    @property
    def load_bytes(self) -> int:
        """Bytes that each trial writes before its measured part; at most about so many."""
        return 0

    @property
    def startup_s(self) -> float:
        """Expected time before the measured part on any drive, besides that of `load_bytes`."""
        return 0.0

    @property
    def verifies(self) -> bool:
        """Whether it reads back everything that it has written."""
        return False

    @property
    def needs_folder(self) -> bool:
        """Whether it needs a temporary folder in its directory (`recipes.names.temporary_folder`)."""
        return False

    @property
    def time_s(self) -> int:
        """Maximum run time in seconds, the fields `runtime_s` and perhaps `ramp_s`; 0 if an amount limits it."""
        raise NotImplementedError

    @property
    def may_end_early(self) -> bool:
        """Whether it has a stop rule, which may end it before its maximum run time."""
        return False

    @property
    def least_time_s(self) -> int:
        """The shortest run time in seconds with its ramp: less than `time_s` only with a stop rule."""
        return self.time_s

    @property
    def largest_io_bytes(self) -> int:
        raise NotImplementedError

    @property
    def size_step_bytes(self) -> int:
        """Sizes that are multiples of it are used completely."""
        return self.largest_io_bytes

    @property
    def end_bytes(self) -> int | None:
        """End of the used part of a device or of each file; None: the whole device."""
        return self.size_bytes

    @property
    def space_bytes(self) -> int:
        """Bytes that its files need in a directory."""
        return 0

    @property
    def kept_bytes(self) -> int:
        """Bytes of its files in a directory that stay for later trials."""
        return 0 if self.needs_folder else self.space_bytes

    @property
    def visits_per_pass(self) -> int:
        """How often each block of the used part is visited when every job has gone through its part once."""
        return 1

    @property
    def sector_multiples(self) -> tuple[tuple[str, int], ...]:
        """Sizes and offsets in bytes that must be multiples of a device's logical sector, each with its name.

        Empty if the page cache is between the workload and the device.
        """
        return ()

    @property
    def features(self) -> tuple[str, ...]:
        """Required features of the host's engine, see `Capabilities.engines`."""
        return ()

    def rated(self) -> Self:
        """The workload without amount, time, ramp and seed, which do not determine its speed."""
        return msgspec.structs.replace(self, seed=1)
