"""Files to import, from a file, a folder or an archive, as a stream with limits."""

from webapp.imports.reading.files import read
from webapp.imports.reading.limits import Limits, Read, Refused

__all__ = ["Limits", "Read", "Refused", "read"]
