"""The lines of a fio job file: sections, and the options that hold in each.

As fio reads them: `;` and `#` begin a comment anywhere in a line, an option may stand alone, a `[global]` section
holds for the sections below it, and several of them add up.
"""

import re
from dataclasses import dataclass

from webapp.core.errors import Refusal

MOST_BYTES = 64 * 1024
MOST_JOBS = 50
_SECTION = re.compile(r"\[([^\[\]]{1,100})\]")
_SHOWN = 5


@dataclass(frozen=True)
class JobProblem:
    """`line` counts from 1; 0 is the whole file. `option` is "" where it is not about one."""

    line: int
    option: str
    message: str

    def __str__(self) -> str:
        where = f"Line {self.line}: " if self.line else ""
        return f"{where}{f'`{self.option}` ' if self.option else ''}{self.message}"


class JobFileError(Refusal):
    """A job file that is not taken, with everything that is wrong in it."""

    def __init__(self, problems: list[JobProblem]) -> None:
        shown = " ".join(str(problem) for problem in problems[:_SHOWN])
        more = f" And {len(problems) - _SHOWN} more." if len(problems) > _SHOWN else ""
        super().__init__("job_file_refused", shown + more)
        self.problems = problems


@dataclass(frozen=True)
class Line:
    """One option as written."""

    number: int
    option: str
    value: str  # "" where it stands alone


@dataclass(frozen=True)
class Section:
    """A job with all lines that hold for it: those of [global] above it first."""

    number: int  # of the line with its name
    name: str
    lines: tuple[Line, ...]


def sections(text: str) -> list[Section]:
    """The jobs of a file in their order. Raises JobFileError."""
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise JobFileError([JobProblem(0, "", f"The file is over the limit of {MOST_BYTES // 1024} KiB.")])
    reading = _Reading([], [], [])
    for number, written in enumerate(text.split("\n"), start=1):
        reading.take(number, re.split(r"[;#]", written, maxsplit=1)[0].strip())
    return reading.finished()


@dataclass
class _Reading:
    """What has been read so far. `jobs` are (line, name, lines); the last one is being read unless `in_global`."""

    jobs: list[tuple[int, str, list[Line]]]
    common: list[Line]
    problems: list[JobProblem]
    in_global: bool = False

    def take(self, number: int, text: str) -> None:
        if not text:
            return
        if section := _SECTION.fullmatch(text):
            self._begin(number, section[1].strip())
        elif not self.jobs and not self.in_global:
            self.problems.append(JobProblem(number, "", "An option stands before the first section, e.g. `[job1]`."))
        else:
            self._option(number, text)

    def _begin(self, number: int, name: str) -> None:
        self.in_global = name == "global"
        if not self.in_global:
            self.jobs.append((number, name or "job", list(self.common)))

    def _option(self, number: int, text: str) -> None:
        option, _, value = (piece.strip() for piece in text.partition("="))
        if text.split()[0] == "include":
            self.problems.append(JobProblem(number, "include", "is not read: paste the other file's text in."))
        elif "$" in text:
            self.problems.append(JobProblem(number, option, "holds `$`: variables are not read, write the value."))
        else:
            (self.common if self.in_global else self.jobs[-1][2]).append(Line(number, option, value))

    def finished(self) -> list[Section]:
        if not self.jobs and not self.problems:
            self.problems.append(JobProblem(0, "", "There is no job in this file: no section other than [global]."))
        if len(self.jobs) > MOST_JOBS:
            self.problems.append(JobProblem(0, "", f"{len(self.jobs)} jobs are more than the {MOST_JOBS} of a plan."))
        if self.problems:
            raise JobFileError(self.problems)
        return [Section(number, name, tuple(lines)) for number, name, lines in self.jobs]
