"""What iozone prints about a run before its results."""

import re

import msgspec

from webapp.imports.errors import ImportRefused
from webapp.imports.values import KIB, size, sorted_factors, whole
from webapp.plans.values import Value

_RECORD = re.compile(r'"?Record [Ss]ize\s*=?\s*(\d{1,12}) k(?:B|Bytes) ?"?\s*', re.IGNORECASE)
_FILE = re.compile(r"File size set to (\d{1,15}) KB", re.IGNORECASE)
_PROCESSES = re.compile(r"Throughput test with (\d{1,6}) (?:process(?:es)?|threads?)")
_VERSION = re.compile(r".*Version \$Revision: ([\d.]{1,12}) \$")
_TESTS = re.compile(r"\s-i\s*(\d{1,2})\b")
_COMMAND = re.compile(r"(?:Command line used:\s*)?(\S{0,200}iozone\s+-.{1,2000})")
_TITLE = "Iozone: Performance Test of File I/O"
_SHELL = re.compile(r"(?:\S{0,100}[$#] )?\S{0,200}iozone\s+-.{1,2000}")
_OPTION = re.compile(r"\s-([rst])\s*(\d{1,12}[kmg]?)\b", re.IGNORECASE)
_FLAGS = {"O_DIRECT feature enabled": ("direct", True), "Include fsync in write timing": ("end_fsync", True)}


class Settings(msgspec.Struct, kw_only=True):
    version: str = ""
    factors: dict[str, Value] = {}
    command: str = ""
    tests: tuple[int, ...] = ()  # of `-i`
    operations: bool = False  # -O: results are operations per second

    def described(self, more: dict[str, Value]) -> tuple[dict[str, Value], dict[str, str]]:
        factors, other = sorted_factors(self.factors | more)
        return factors, other | ({"command": self.command} if self.command else {})


def runs(text_lines: list[str]) -> list[list[str]]:
    """The lines of each run. A run begins with iozone's title or with a command of the shell."""
    found: list[list[str]] = [[]]
    for line in text_lines:
        if _TITLE in line or _SHELL.fullmatch(line.strip()):
            found.append([])
        found[-1].append(line)
    return found


def settings(text_lines: list[str]) -> Settings:
    """Raises ImportRefused for a unit that is not imported."""
    found = Settings()
    for line in map(str.strip, text_lines):
        if record := _RECORD.fullmatch(line):
            found.factors["block_size"] = whole(record[1]) * KIB
        elif file_size := _FILE.fullmatch(line):
            found.factors["size"] = whole(file_size[1]) * KIB
        elif processes := _PROCESSES.fullmatch(line):
            found.factors["numjobs"] = whole(processes[1])
        elif version := _VERSION.fullmatch(line):
            found.version = version[1]
        elif (command := _COMMAND.fullmatch(line)) and not found.command:
            found.command = command[1][:500]
            found.tests = tuple(int(test) for test in _TESTS.findall(command[1]))
            found.factors = _of_command(command[1]) | found.factors
        elif line in _FLAGS:
            name, value = _FLAGS[line]
            found.factors[name] = value
        elif line.startswith("OPS Mode"):
            found.operations = True
        elif line.startswith("Microseconds/op Mode"):
            raise ImportRefused("These results are in microseconds per operation (iozone -N). They are not imported.")
    return found


def _of_command(command: str) -> dict[str, Value]:
    """Record size, file size and threads, if each is given once. Without a unit, sizes are in KiB (iozone -h)."""
    names = {"r": "block_size", "s": "size", "t": "numjobs"}
    given: dict[str, list[str]] = {}
    for option, value in _OPTION.findall(command):
        given.setdefault(option, []).append(value)
    stated: dict[str, Value] = {}
    for option, values in given.items():
        if len(values) == 1 and option in names:
            plain = values[0][-1].isdigit() and option != "t"
            stated[names[option]] = size(f"{values[0]}k" if plain else values[0], "option")
    return stated
