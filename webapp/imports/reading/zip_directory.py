"""The size of a zip file's directory, which Python reads into memory at once.

Source: PKWARE's APPNOTE.TXT, 4.3.16 (end of central directory) and 4.3.14 (zip64).
"""

import os
import struct
from typing import IO

from webapp.imports.errors import ImportRefused

_END, _END_64 = b"PK\x05\x06", b"PK\x06\x06"
_SEARCHED = 66 * 1024  # the end has at most 22 bytes and a comment of 64 KiB
_LEAST = 46  # bytes of an entry without its name
_USUAL = 250  # bytes of an entry with its name and extra fields


def check_directory(file: IO[bytes], most_files: int) -> None:
    """Raises ImportRefused if the directory may have more than `most_files` entries. Leaves the file at its begin."""
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - _SEARCHED))
    tail = file.read(_SEARCHED)
    file.seek(0)
    count, size = _stated(tail)
    if count > most_files or size > max(1, most_files) * _USUAL + _LEAST:
        words = f"The zip file has {count:,} files, and at most {max(0, most_files):,} more can be imported at once."
        raise ImportRefused(f"{words} Import it in parts.")


def _stated(tail: bytes) -> tuple[int, int]:
    """Number of entries and bytes of the directory."""
    place = tail.rfind(_END)
    if place < 0 or len(tail) < place + 22:
        raise ImportRefused("The zip file is truncated: its directory is missing.")
    count, size = struct.unpack_from("<HI", tail, place + 10)
    place_64 = tail.rfind(_END_64, 0, place)
    if place_64 >= 0 and place >= place_64 + 56:
        count, size = struct.unpack_from("<QQ", tail, place_64 + 32)
    return count, size
