"""Strict structs, size limits and version negotiation shared by all messages."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, TypeVar

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
    for found in kind.__subclasses__():
        yield found
        yield from _subclasses(found)
