"""Files to import, from files, folders and archives, as a stream with limits."""

from webapp.imports.reading.files import read, read_all, read_in_turn
from webapp.imports.reading.limits import LeftOut, Limits, Read, Refused

__all__ = ["LeftOut", "Limits", "Read", "Refused", "read", "read_all", "read_in_turn"]
