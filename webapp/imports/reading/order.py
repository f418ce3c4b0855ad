"""The order of files in a folder or an archive.

Paths are in the natural order of their parts, so that 2.json is before 16.json. The logs of fio come after all other
files of their folder, those of one trial together: each trial then has all its logs before it is joined to its test.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import Self

from webapp.imports.formats.fio_log import log_name
from webapp.imports.reading.limits import LeftOut, Read, Refused

_NUMBER = re.compile(r"[0-9]{1,18}")
_END, _DIGITS, _FILE, _LOG = "\0", "\1", "\2", "\3"  # they sort before all characters of names
_SPOOL_BYTES = 4 * 1024**2


def in_order(path: str) -> str:
    """A key to sort by. It is one text, because an archive may have hundreds of thousands of paths."""
    folder, _, name = path.rpartition("/")
    begin = "".join(f"{_FILE}{_natural(part)}{_END}" for part in folder.split("/")) if folder else ""
    log = log_name(name)
    if log is None:
        return f"{begin}{_FILE}{_natural(name)}"
    return f"{begin}{_LOG}{_natural(log.prefix)}{_END}{log.prefix}{_END}{_natural(name)}"


def _natural(text: str) -> str:
    """Numbers compare by their length and then by their digits. Zeros in front do not count."""
    return _NUMBER.sub(_comparable, text)


def _comparable(number: re.Match[str]) -> str:
    digits = number[0].lstrip("0")
    return f"{_DIGITS}{len(digits):02}{digits}"


class LogSpool:
    """The logs of a tar archive, whose files come in any order. Their texts are in an unnamed temporary file."""

    def __init__(self) -> None:
        self._texts = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115  closed by `__exit__`
        self._held: list[tuple[str, int, int]] = []  # path, begin and length of its text
        self._refused: list[Refused | LeftOut] = []
        self._trials: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._texts.close()

    def without_logs(self, files: Iterable[Read | Refused | LeftOut]) -> Iterator[Read | Refused | LeftOut]:
        """Keep the logs, and return the other files at once."""
        for file in files:
            name = log_name(file.path)
            if name is None or (isinstance(file, LeftOut) and name.trial not in self._trials):
                yield file
            elif isinstance(file, Read):
                self._trials.add(name.trial)
                begin = self._texts.tell()
                length = self._texts.write(file.text.encode("utf-8", "surrogatepass"))
                self._held.append((file.path, begin, length))
            else:
                self._refused.append(file)
            del file  # otherwise its text is in memory while the next one is read

    def logs(self) -> Iterator[Read | Refused | LeftOut]:
        """The logs, those of one trial together."""
        places = [*self._held, *((each.path, -1, place) for place, each in enumerate(self._refused))]
        for path, begin, length in sorted(places, key=lambda place: in_order(place[0])):
            if begin < 0:
                yield self._refused[length]
                continue
            self._texts.seek(begin)
            yield Read(path, self._texts.read(length).decode("utf-8", "surrogatepass"))

    def refused(self, reason: str, code: str) -> Iterator[Refused | LeftOut]:
        """All logs with a reason."""
        yield from (Refused(path, reason, code) for path, _, _ in self._held)
        yield from self._refused
