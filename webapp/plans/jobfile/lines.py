"""Parses a fio job file into sections and their options.

As in fio: `;` and `#` begin a comment anywhere in a line, an option may have no value, a `[global]` section applies to
the sections below it, and several of them accumulate. Sweetspot's comments (see `writer`) are read too.
"""

import re
from dataclasses import dataclass, field

from webapp.core.errors import Refusal

MAX_BYTES = 256 * 1024
MAX_JOBS = 1000
MAX_OPTIONS = 100_000  # of all jobs, each with those of [global]
_SECTION = re.compile(r"\[([^\[\]]{1,100})\]")
_STATED = re.compile(r"[;#]\s*sweetspot( plan)?:\s*([a-z][a-z0-9_.]{0,59})\s*=(.*)", re.ASCII)
_SHOWN = 5


@dataclass(frozen=True)
class JobProblem:
    """`line` counts from 1; 0 is the whole file. `option` is "" if no option is concerned."""

    line: int
    option: str
    message: str

    def __str__(self) -> str:
        where = f"Line {self.line}: " if self.line else ""
        return f"{where}{f'`{self.option}` ' if self.option else ''}{self.message}"


class JobFileError(Refusal):
    """A refused job file, with all its problems."""

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
    value: str  # "" without a value


@dataclass(frozen=True)
class Section:
    """A job with all lines that apply to it, those of [global] first."""

    number: int  # of the line with its name
    name: str
    lines: tuple[Line, ...]
    stated: tuple[Line, ...] = ()  # Sweetspot's comments: `option` is a factor, `part` or `on`


@dataclass(frozen=True)
class JobFile:
    """`plan` are Sweetspot's comments about the whole plan: `title`, `repeats`, `order` and so on."""

    sections: tuple[Section, ...]
    plan: tuple[Line, ...] = ()
    problems: tuple[JobProblem, ...] = ()  # lines that are not options; the others are still checked


def read_lines(text: str) -> JobFile:
    """The jobs of a file in their order. Raises JobFileError if there are none or too many."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise JobFileError([JobProblem(0, "", f"The file is over the limit of {MAX_BYTES // 1024} KiB.")])
    reading = _Reading([], [], [])
    for number, written in enumerate(text.split("\n"), start=1):
        if stated := _STATED.fullmatch(written.strip()):
            reading.state(Line(number, stated[2], stated[3].strip()), of_plan=bool(stated[1]))
            continue
        reading.take(number, re.split(r"[;#]", written, maxsplit=1)[0].strip())
    return reading.finished()


@dataclass
class _Reading:
    """The state of the parser. `jobs` are (line, name, lines); the last one is being read unless `in_global`."""

    jobs: list[tuple[int, str, list[Line]]]
    common: list[Line]
    problems: list[JobProblem]
    in_global: bool = False
    plan: list[Line] = field(default_factory=list)
    stated: list[list[Line]] = field(default_factory=list)  # of each job
    options: int = 0  # of all jobs so far

    def state(self, line: Line, *, of_plan: bool) -> None:
        """A comment of Sweetspot. Outside a job, a comment about a factor is ignored."""
        if of_plan:
            self.plan.append(line)
        elif self.jobs and not self.in_global:
            self.stated[-1].append(line)

    def take(self, number: int, text: str) -> None:
        if not text:
            return
        if section := _SECTION.fullmatch(text):
            self._begin(number, section[1].strip())
        elif not self.jobs and not self.in_global:
            self._before_sections(number)
        else:
            self._option(number, text)

    def _before_sections(self, number: int) -> None:
        """One problem for all such lines: they have one cause."""
        words = (
            "Options before the first section, e.g. `[job1]`. If the text is the YAML of a plan, choose that format."
        )
        if not any(problem.message == words for problem in self.problems):
            self.problems.append(JobProblem(number, "", words))

    def _begin(self, number: int, name: str) -> None:
        self.in_global = name == "global"
        if not self.in_global:
            self._count(len(self.common))
            self.jobs.append((number, name or "job", list(self.common)))
            self.stated.append([])
        if len(self.jobs) > MAX_JOBS:
            raise JobFileError([JobProblem(0, "", f"The file has more than {MAX_JOBS:,} jobs. Split it.")])

    def _count(self, options: int) -> None:
        """Refuse early: each job gets a copy of the options of [global]."""
        self.options += options
        if self.options > MAX_OPTIONS:
            words = f"The jobs have more than {MAX_OPTIONS:,} options together. Split the file."
            raise JobFileError([JobProblem(0, "", words)])

    def _option(self, number: int, text: str) -> None:
        self._count(1)
        option, _, value = (piece.strip() for piece in text.partition("="))
        if text.split()[0] == "include":
            self.problems.append(JobProblem(number, "include", "is not supported: paste the other file's text."))
        elif "$" in text:
            self.problems.append(
                JobProblem(number, option, "contains `$`: variables are not supported, write the value.")
            )
        else:
            (self.common if self.in_global else self.jobs[-1][2]).append(Line(number, option, value))

    def finished(self) -> JobFile:
        if not self.jobs and not self.problems:
            self.problems.append(JobProblem(0, "", "There is no job in this file: no section other than [global]."))
        if not self.jobs:
            raise JobFileError(self.problems)
        jobs = zip(self.jobs, self.stated, strict=True)
        sections = tuple(Section(number, name, tuple(lines), tuple(said)) for (number, name, lines), said in jobs)
        return JobFile(sections, tuple(self.plan), tuple(self.problems))
