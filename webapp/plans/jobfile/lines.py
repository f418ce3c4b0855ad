"""Reads the text of a fio job file: its sections, their options, and Sweetspot's comments (see `writer`).

As in fio: `;` and `#` begin a comment anywhere in a line, an option may have no value, and a section whose name begins
with `global` applies to the sections below it; several of them accumulate. `include` reads another file of the import
in its place. `${NAME}`, `$ncpus`, `$pagesize` and `$mb_memory` get the values given with the file; fio would take them
from its environment and its host, which an import does not know.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from webapp.core.errors import Refusal
from worker.recipes.fio.options import ALLOWED, Meaning

MAX_BYTES = 256 * 1024  # of a file with all that it includes
MAX_JOBS = 1000
MAX_OPTIONS = 100_000  # of all jobs, each with those of [global]
MAX_FILES = 50
MAX_DEPTH = 10  # of included files
MAX_VARIABLES, MAX_VALUE = 100, 1000  # a value has so many characters
MAX_CALCULATION = 100  # characters, as in fio
_SECTION = re.compile(r"\[([^\[\]]{1,100})\]")
_STATED = re.compile(r"[;#]\s*sweetspot( plan)?:\s*([a-z][a-z0-9_.]{0,59})\s*=(.*)", re.ASCII)
_NOTE = re.compile(r"; >(?: (.*))?")
_KEYWORDS = ("ncpus", "pagesize", "mb_memory")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}|\$([A-Za-z_][A-Za-z0-9_]{0,99})", re.ASCII)
_SHOWN = 5


@dataclass(frozen=True)
class JobProblem:
    """`line` counts from 1; 0 is the whole file. `option` is "" if no option is concerned. `variable` has no value."""

    line: int
    option: str
    message: str
    variable: str = ""

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

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables that need a value."""
        return tuple(dict.fromkeys(problem.variable for problem in self.problems if problem.variable))


@dataclass(frozen=True)
class Line:
    """One option as written."""

    number: int  # of an included option, the line of `include`
    option: str
    value: str  # "" without a value
    file: str = ""  # the included file with its line: `common.fio, line 3`
    complete: bool = True  # a variable without a value or an include without its file is a problem of the file


@dataclass(frozen=True)
class Section:
    """A job with all lines that apply to it, those of [global] first."""

    number: int  # of the line with its name
    name: str
    lines: tuple[Line, ...]
    stated: tuple[Line, ...] = ()  # Sweetspot's comments: `option` is a factor, or a name of `GROUPING`


@dataclass(frozen=True)
class JobFile:
    """`plan` are Sweetspot's comments about the whole plan: `title`, `repeats`, `order` and so on."""

    sections: tuple[Section, ...]
    plan: tuple[Line, ...] = ()
    note: str = ""  # of an exported plan
    problems: tuple[JobProblem, ...] = ()  # lines that are not options; the others are still checked


def read_lines(text: str, variables: Mapping[str, str], files: Mapping[str, str]) -> JobFile:
    """The jobs of a file in their order. Raises JobFileError if there are none or too many."""
    reading = _Reading(variables, files)
    reading.read(text)
    return reading.finished()


@dataclass
class _Reading:
    """The state of the parser. `jobs` are (line, name, lines); the last one is being read unless `in_global`."""

    variables: Mapping[str, str]
    files: Mapping[str, str]
    jobs: list[tuple[int, str, list[Line]]] = field(default_factory=list)
    common: list[Line] = field(default_factory=list)
    problems: list[JobProblem] = field(default_factory=list)
    in_global: bool = False
    plan: list[Line] = field(default_factory=list)
    note: list[str] = field(default_factory=list)
    stated: list[list[Line]] = field(default_factory=list)  # of each job
    options: int = 0  # of all jobs so far
    size_bytes: int = 0  # of all files so far

    def read(self, text: str) -> None:
        self._count_bytes(text)
        if len(self.files) > MAX_FILES:
            raise JobFileError([JobProblem(0, "", f"More than {MAX_FILES} files are given.")])
        if len(self.variables) > MAX_VARIABLES:
            raise JobFileError([JobProblem(0, "", f"More than {MAX_VARIABLES} variables are given.")])
        for name, value in self.variables.items():
            if len(value) > MAX_VALUE or not value.isprintable():
                words = f"The value of `{name[:MAX_VALUE]}` is not one line of at most {MAX_VALUE:,} characters."
                raise JobFileError([JobProblem(0, "", words)])
        for number, written in enumerate(text.split("\n"), start=1):
            if stated := _STATED.fullmatch(written.strip()):
                self._state(Line(number, stated[2], stated[3].strip()), of_plan=bool(stated[1]))
            elif self.plan and not self.jobs and (noted := _NOTE.fullmatch(written.rstrip())):
                self.note.append(noted[1] or "")
            else:
                self._take(number, _without_comment(written))

    def _count_bytes(self, text: str) -> None:
        self.size_bytes += len(text.encode("utf-8", "surrogatepass"))
        if self.size_bytes > MAX_BYTES:
            raise JobFileError([JobProblem(0, "", f"The file is over the limit of {MAX_BYTES // 1024} KiB.")])

    def _state(self, line: Line, *, of_plan: bool) -> None:
        """A comment of Sweetspot. Outside a job, a comment about a factor is ignored."""
        if of_plan:
            self.plan.append(line)
        elif self.jobs and not self.in_global:
            self.stated[-1].append(line)

    def _take(self, number: int, text: str) -> None:
        if not text:
            return
        if section := _SECTION.fullmatch(text):
            self._begin(number, section[1].strip())
        elif not self.jobs and not self.in_global:
            self._before_sections(number)
        elif text.startswith("include"):
            self._include(number, text, depth=1)
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
        self.in_global = name.startswith("global")
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

    def _include(self, number: int, text: str, depth: int) -> None:
        name = text[len("include") + 1 :].strip()
        included = self.files.get(name, self.files.get(PurePosixPath(name).name))
        if included is None:
            self.problems.append(JobProblem(number, "include", f"needs the file `{name}`: give it with the job file."))
            self._add(Line(number, "include", name, complete=False))
            return
        if depth > MAX_DEPTH:
            words = f"of `{name}` is the {MAX_DEPTH + 1}th in each other. Put the text into one file."
            raise JobFileError([JobProblem(number, "include", words)])
        self._count_bytes(included)
        for place, written in enumerate(included.replace("\r\n", "\n").split("\n"), start=1):
            line = _without_comment(written)
            if line.startswith("["):
                words = f"of `{name}` is refused: its line {place} begins a section, which fio does not allow there."
                self.problems.append(JobProblem(number, "include", words))
            elif line.startswith("include"):
                self._include(number, line, depth + 1)
            elif line:
                self._option(number, line, f"{name}, line {place}")

    def _option(self, number: int, text: str, file: str = "") -> None:
        self._count(1)
        replaced, complete = self._with_values(number, text)
        option, _, value = (piece.strip() for piece in replaced.partition("="))
        self._add(Line(number, option, value, file, complete))

    def _add(self, line: Line) -> None:
        lines = self.common if self.in_global else self.jobs[-1][2]
        lines.append(line)

    def _with_values(self, number: int, text: str) -> tuple[str, bool]:
        """The text with the values of its variables, and whether all have one.

        Options that are only compared, shown or left out need no values.
        """
        option = text.partition("=")[0].strip()
        known = ALLOWED.get(option)
        needed = option not in _NAMES and (known is None or known.meaning is not Meaning.LEFT_OUT)
        names = [match[1] or match[2] for match in _VARIABLE.finditer(text)]
        missing = [name for name in names if name not in self.variables] if needed else []
        for name in dict.fromkeys(missing):
            words = f"needs a value of the variable `{name}`: give it with the file."
            self.problems.append(JobProblem(number, option, words, name))
        replaced = _VARIABLE.sub(lambda match: self.variables.get(match[1] or match[2], match[0]), text)
        return (_calculated(replaced) if {*names} & {*_KEYWORDS} else replaced), not missing

    def finished(self) -> JobFile:
        if not self.jobs and not self.problems:
            self.problems.append(JobProblem(0, "", "There is no job in this file: no section other than [global]."))
        if not self.jobs:
            raise JobFileError(self.problems)
        jobs = zip(self.jobs, self.stated, strict=True)
        sections = tuple(Section(number, name, tuple(lines), tuple(stated)) for (number, name, lines), stated in jobs)
        return JobFile(sections, tuple(self.plan), "\n".join(self.note), tuple(self.problems))


_NAMES = ("filename", "directory", "filename_format", "description", "name")  # only compared and shown


def _without_comment(written: str) -> str:
    return re.split(r"[;#]", written, maxsplit=1)[0].strip()


_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
}  # fmt: skip


def _calculated(text: str) -> str:
    """`numjobs=8*2` is `numjobs=16`: fio passes the value to bc if it has a keyword such as $ncpus."""
    option, _, value = text.partition("=")
    if len(value) > MAX_CALCULATION:
        return text
    try:
        return f"{option}={_number(ast.parse(value.strip(), mode='eval').body)}"
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return text  # no calculation


def _number(node: ast.expr) -> int:
    """Raises ValueError for all but whole numbers below 2^63 and + - * /."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        number = _OPERATIONS[type(node.op)](_number(node.left), _number(node.right))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        number = node.value
    else:
        raise ValueError("not a calculation")
    if abs(number) >= 2**63:
        raise ValueError("too large")
    return number
