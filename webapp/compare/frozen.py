"""Frozen numbers of saved comparisons, as they are stored."""

import zlib
from typing import TypeVar

import msgspec

from webapp.compare.query import CompareRefused

Numbers = TypeVar("Numbers", bound=msgspec.Struct)


def frozen(numbers: msgspec.Struct) -> bytes:
    return zlib.compress(msgspec.json.encode(numbers))


def unfrozen(stored: bytes | memoryview, kind: type[Numbers]) -> Numbers:
    """Raises CompareRefused if another version of Sweetspot froze them."""
    try:
        return msgspec.json.decode(zlib.decompress(bytes(stored)), type=kind)
    except (msgspec.DecodeError, zlib.error) as error:
        message = "The numbers were frozen by another version of Sweetspot, which this version cannot read."
        raise CompareRefused("comparison_unreadable", message) from error
