"""Converts a job file into a plan: each job becomes a part; the jobs of an exported part become that part again.

Jobs that fio would run at the same time are refused, because a trial has one workload; `stonewall` separates them.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

import msgspec

from webapp.core.errors import Refusal
from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.factors import FACTORS
from webapp.plans.points import applicable, with_defaults
from webapp.plans.values import Value, ValueRefused
from worker.contract.workload import IoEngine, Pattern
from worker.recipes.fio.options import ALLOWED, REFUSED, Meaning, Option, OptionRefused, sequence

# Converts one job of a file into the factors of a part.
#
# Options must be on the worker's allowlist; others are refused by name. Missing options get fio's defaults
# (sequential reads, psync, buffered), not Sweetspot's, so that the plan measures the same as the file.

# Parses a fio job file into sections and their options.
#
# As in fio: `;` and `#` begin a comment anywhere in a line, an option may have no value, a `[global]` section applies
# to the sections below it, and several of them accumulate. Sweetspot's comments (see `writer`) are read too.

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


_FIO_DEFAULTS: Mapping[str, Value] = {"pattern": "read", "ioengine": "psync", "direct": False}
_STONEWALL = "stonewall"
_OF_BOTH = ("block_size", "block_split", "rate", "rate_iops")  # factors with a separate value of writes
GROUPING = ("part", "on")  # properties of a section that are not factors


@dataclass
class Job:
    """The options of a section, while it is read."""

    section: Section
    problems: list[JobProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # differences from fio
    values: dict[str, Value] = field(default_factory=dict)  # factor -> stored value
    given: dict[str, Line] = field(default_factory=dict)  # option, or factor that it set -> its last line

    @property
    def stonewalled(self) -> bool:
        line = self.given.get(_STONEWALL)
        return line is not None and line.value != "0"

    def line_of(self, name: str) -> int:
        return self.given[name].number if name in self.given else self.section.number

    def refuse(self, option: str, message: str) -> None:
        self.problems.append(JobProblem(self.line_of(option), option, message))


def read_job(section: Section) -> Job:
    """A section's factors; its errors are in `problems`."""
    job = Job(section)
    for option, line in _last_lines(job).items():
        _take(job, option, line)
    if not job.problems:
        job.values = dict(_FIO_DEFAULTS) | job.values
        _whole(job)
    if section.stated:
        job.notes.clear()  # written by Sweetspot: no differences from fio
        _stated(job)
    return job


def _stated(job: Job) -> None:
    """Sweetspot's comments override fio's options, and `block_split` overrides `block_size`."""
    for line in job.section.stated:
        if line.option in GROUPING:
            continue
        try:
            if line.option not in FACTORS:
                raise ValueRefused(f"there is no factor `{line.option}`")
            job.values[line.option] = FACTORS[line.option].values.parse(line.value)
        except ValueError as error:
            job.problems.append(JobProblem(line.number, line.option, f"is refused: {str(error)[:300]}."))
    for other, wins in (("block_size", "block_split"), ("amount", "runtime")):
        if wins in job.values:
            job.values.pop(other, None)


def texts(job: Job) -> dict[str, str]:
    """The factors as text for a plan; call it only if there are no problems."""
    return {name: FACTORS[name].values.write(value) for name, value in job.values.items()}


def whole_point(job: Job) -> dict[str, str]:
    """The factors including defaults, so that all points of a part have the same factors."""
    grid = with_defaults({name: (value,) for name, value in job.values.items()}, drop_caches=False)
    point = applicable({name: value for name, (value,) in grid.items()})
    return {name: FACTORS[name].values.write(value) for name, value in point.items()}


def _last_lines(job: Job) -> dict[str, Line]:
    """Option -> its effective line: the last one, under any of its names."""
    found: dict[str, Line] = {}
    for line in job.section.lines:
        option = ALLOWED.get(line.option)
        if option is None:
            job.problems.append(JobProblem(line.number, line.option, _not_supported(line.option)))
            continue
        found.pop(option.name, None)
        found[option.name] = line
        job.given[option.name] = line
    return found


def _not_supported(option: str) -> str:
    why = f": {REFUSED[option]}" if option in REFUSED else ""
    return f"is not supported by Sweetspot{why}. Remove it."


def _take(job: Job, name: str, line: Line) -> None:
    option = ALLOWED[name]
    try:
        for factor, value in option.read(line.value).items():
            _set(job, factor, _checked(factor, value, option), line)
    except ValueError as error:  # OptionRefused, ValueRefused, or more digits than Python converts to a number
        words = str(error) if not isinstance(error, UnicodeError) else "cannot be read"
        job.problems.append(JobProblem(line.number, line.option, f"is refused: {words[:300]}."))


def _checked(factor: str, value: Value, option: Option) -> Value:
    """Check the factor's limits, except for sizes that are still to be divided among files."""
    if option.meaning in (Meaning.PER_JOB, Meaning.OVER_FILES) and factor != "size_percent":
        if not isinstance(value, int) or not 0 < value <= 2**60:
            raise ValueRefused("the size is not possible")
        return value
    if option.meaning is Meaning.SEQUENCE and factor == "skip":
        return value
    return FACTORS[factor].values.parse(value if isinstance(value, str) else FACTORS[factor].values.write(value))


def _set(job: Job, factor: str, value: Value, line: Line) -> None:
    if factor in job.values and job.values[factor] != value:
        other = job.given[factor].option
        job.problems.append(JobProblem(line.number, line.option, f"contradicts `{other}`: remove one of them."))
        return
    job.values[factor] = value
    job.given[factor] = line


def _whole(job: Job) -> None:
    """Values that depend on the whole job: order of offsets, sizes of files, amounts, depth, the end."""
    for step in (_depth, _job_split, _mix, _sequence, _priority, _sizes, _end, _differences):
        step(job)


def _depth(job: Job) -> None:
    engine = IoEngine(str(job.values["ioengine"]))
    if not engine.asynchronous and int(job.values.get("iodepth") or 1) > 1:
        job.refuse(
            "iodepth",
            f"has no effect with {engine}, which has one I/O in flight: remove it, or choose another I/O engine.",
        )


def _job_split(job: Job) -> None:
    """bssplit and bsrange override bs, as in fio."""
    if "block_split" in job.values or "block_range" in job.values:
        job.values.pop("block_size", None)
        job.values.pop("write_block_size", None)


def _mix(job: Job) -> None:
    """The share of reads; 50 % by default, and without effect if the pattern does not mix.

    If the pattern does not mix, separate values of reads and writes become a single value.
    """
    pattern = Pattern(str(job.values["pattern"]))
    if pattern.mixed:
        return
    job.values.pop("read_percent", None)
    for name in _OF_BOTH:
        of_writes = job.values.pop(f"write_{name}", None)
        if of_writes is not None and pattern.writes:
            job.values[name] = of_writes


def _sequence(job: Job) -> None:
    gap = job.values.pop("skip", None)
    if not isinstance(gap, int):
        return
    try:
        job.values |= sequence(gap, int(job.values.get("block_size") or FACTORS["block_size"].default or 0))
    except OptionRefused as refused:
        job.refuse("rw", str(refused))


def _priority(job: Job) -> None:
    """fio's prioclass and prio are one factor."""
    lines = {name: job.given[name].value for name in ("prioclass", "prio") if name in job.given}
    kind = {"1": "rt", "2": "be", "3": "idle"}.get(lines.get("prioclass", "2").strip(), "none")
    if lines:
        job.values["ionice"] = f"{kind}/{int(lines.get('prio', '0'))}" if kind in ("rt", "be") else kind


def _sizes(job: Job) -> None:
    """fio's size is the total of one job's files, Sweetspot's is the size of each file."""
    line, size = job.given.get("size"), job.values.get("size")
    if line is None or not isinstance(size, int) or ALLOWED[line.option].meaning is not Meaning.OVER_FILES:
        return
    each, rest = divmod(size, int(job.values.get("files") or 1))
    if rest or each % 512:
        job.refuse("size", f"of {size} bytes cannot be divided among the files in whole blocks of 512 bytes.")
    job.values["size"] = each


def _end(job: Job) -> None:
    """A run time, an amount, or without either fio's default: every job goes once through its size."""
    jobs = int(job.values.get("numjobs") or 1) * int(job.given["loops"].value if "loops" in job.given else 1)
    amount, size = job.values.get("amount"), job.values.get("size")
    if "runtime" in job.values:
        if amount is not None:
            job.refuse("runtime", "and `io_size` are both given, and fio ends at the first: remove one of them.")
        elif "time_based" not in job.given:
            job.notes.append("without `time_based` fio would end early once every job has gone through its size")
        return
    total = (
        amount if isinstance(amount, int) else size * int(job.values.get("files") or 1) if isinstance(size, int) else 0
    )
    if not total:
        job.problems.append(JobProblem(job.section.number, "", f"[{job.section.name}] never ends: give it a runtime."))
    elif job.values.get("ramp"):
        job.refuse("ramp_time", "needs a runtime: the bytes moved during the ramp would be missing from the amount.")
    else:
        job.values["amount"] = min(total * jobs, 2**60)


def _differences(job: Job) -> None:
    """Differences between fio and Sweetspot, for the plan's note."""
    pattern, jobs = Pattern(str(job.values["pattern"])), int(job.values.get("numjobs") or 1)
    if pattern.random and "norandommap" not in job.given:
        job.notes.append("fio would visit every block once before any twice; here every offset is drawn independently")
    if pattern.stores and "buffers" not in job.values:
        job.notes.append("fio would scramble one random buffer; here the data does not compress")
    if jobs > 1 and not pattern.random:
        job.notes.append("fio's jobs would all begin at the same offset; here each uses a separate part of the file")
    if jobs > 1 and "filename" not in job.given:
        job.notes.append("fio's jobs would have files of their own; here they share them")
    job.notes.extend(_logging(job))
    for option in ("filename", "directory"):
        if option in job.given:
            job.notes.append(
                f"`{option}={job.given[option].value}` is left out: a run's targets are chosen when it starts"
            )


def _logging(job: Job) -> list[str]:
    """One note about all options of logs."""
    named = [name for name in job.given if name in ALLOWED and ALLOWED[name].meaning is Meaning.LOGGING]
    if not named:
        return []
    return [f"{', '.join(f'`{name}`' for name in named)} ignored: {ALLOWED[named[0]].note}"]


# Folds the sections that Sweetspot wrote for the points of one part into as few parts as possible.

MAX_LEVELS_LENGTH = 1000  # characters of a factor's levels in a plan
Texts = dict[str, str]  # factor -> one level, as a plan writes it


def folded(points: Sequence[Texts]) -> list[Texts]:
    """Full-factorial grids, factor -> levels, that together contain exactly `points`, in their order."""
    alike: dict[frozenset[str], list[Texts]] = {}
    for point in points:
        alike.setdefault(frozenset(point), []).append(point)
    return [_said(grid) for group in alike.values() for grid in _grids(group)]


def _said(grid: Texts) -> Texts:
    """The point without default levels."""
    return {name: text for name, text in grid.items() if text != FACTORS[name].values.write(FACTORS[name].default)}


def _grids(points: Sequence[Texts]) -> list[Texts]:
    """Grids of points with the same factors: one grid if they fill it, else one per level of a varying factor."""
    levels = {name: list(dict.fromkeys(point[name] for point in points)) for name in points[0]}
    distinct = {tuple(point[name] for name in levels) for point in points}
    if len(distinct) == math.prod(len(texts) for texts in levels.values()):
        grid = {name: ", ".join(texts) for name, texts in levels.items()}
        long = next((name for name, text in grid.items() if len(text) > MAX_LEVELS_LENGTH), "")
        return _split(points, long, _halves(levels[long])) if long else [grid]
    name = next(name for name, texts in levels.items() if len(texts) > 1)
    return _split(points, name, [[text] for text in levels[name]])


def _split(points: Sequence[Texts], name: str, shares: Sequence[Sequence[str]]) -> list[Texts]:
    return [grid for share in shares for grid in _grids([point for point in points if point[name] in share])]


def _halves(texts: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    middle = len(texts) // 2
    return texts[:middle], texts[middle:]


_TITLE_LENGTH = 200
_NOTE_LENGTH = 20_000
_MAX_PARTS = 50
_ABOUT_PLAN = ("title", "repeats", "spread_percent", "repeats_min", "order", "retries", "stop_after", "sequence")


def read_job_file(text: str, *, title: str = "") -> PlanDocument:
    """A plan that measures what the job file would, with the order of its jobs kept. Raises JobFileError.

    The plan's note lists the differences from fio.
    """
    file = read_lines(text)
    jobs = [read_job(section) for section in file.sections]
    problems = [*file.problems, *_simultaneous(jobs), *(problem for job in jobs for problem in job.problems)]
    if problems:
        raise JobFileError(sorted(dict.fromkeys(problems), key=lambda problem: problem.line))
    parts = _parts(jobs)
    named = title.strip() or f"fio job {jobs[0].section.name}"
    document = PlanDocument(title=named[:_TITLE_LENGTH], parts=parts, order=Order.LISTED, note=_note(jobs))
    return _as_stated(document, file.plan, keep_title=bool(title.strip()))


def _as_stated(document: PlanDocument, lines: Sequence[Line], *, keep_title: bool) -> PlanDocument:
    """The plan with the values from the file's comments."""
    said: dict[str, object] = {line.option: line.value for line in lines if line.option in _ABOUT_PLAN}
    if keep_title:
        said.pop("title", None)
    if "sequence" in said:
        said["sequence"] = [name.strip() for name in str(said["sequence"]).split(",")]
    try:
        return msgspec.convert(msgspec.to_builtins(document) | said, PlanDocument, strict=False)
    except msgspec.ValidationError as error:
        at = next((line.number for line in lines if f"$.{line.option}" in str(error)), 0)
        raise JobFileError([JobProblem(at, "", f"This comment is not understood: {error}.")]) from error


@dataclass(frozen=True)
class _Group:
    """Jobs that Sweetspot wrote for one part of a plan; or a single other job with `part` ""."""

    part: str
    on: tuple[str, ...]


def _group(job: Job) -> _Group:
    stated = {line.option: line.value for line in job.section.stated}
    kinds = tuple(kind.strip() for kind in stated.get("on", "").split(",") if kind.strip())
    return _Group(stated.get("part", "")[:90], kinds)


def _parts(jobs: Sequence[Job]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for group, members in groupby(jobs, key=_group):
        if group.part:
            grids = [(group.part, grid) for grid in folded([whole_point(job) for job in members])]
        else:
            grids = [(job.section.name[:90], texts(job)) for job in members]
        made = [Part(name=name, factors=grid) for name, grid in grids]
        parts += [msgspec.structs.replace(part, on=group.on) for part in made] if group.on else made
    if len(parts) > _MAX_PARTS:
        problem = f"{len(parts)} jobs exceed the maximum of {_MAX_PARTS} parts in a plan."
        raise JobFileError([JobProblem(0, "", problem)])
    names = _numbered([part.name for part in parts])
    return tuple(msgspec.structs.replace(part, name=name) for part, name in zip(parts, names, strict=True))


def _simultaneous(jobs: Sequence[Job]) -> list[JobProblem]:
    return [
        JobProblem(
            job.section.number,
            "",
            f"[{job.section.name}] would run at the same time as [{before.section.name}], which is not supported. "
            f"Put `stonewall` into [{job.section.name}] to run it afterwards.",
        )
        for before, job in pairwise(jobs)
        if not job.stonewalled
    ]


def _numbered(wanted: Sequence[str]) -> list[str]:
    """The names; repeated names get a number."""
    names: dict[str, None] = {}
    next_number: dict[str, int] = {}
    for name in wanted:
        numbered = name
        while numbered in names:
            next_number[name] = next_number.get(name, 1) + 1
            numbered = f"{name} {next_number[name]}"
        names[numbered] = None
    return list(names)


def _note(jobs: Sequence[Job]) -> str:
    names = _numbered([job.section.name[:90] for job in jobs])
    lines = [f"- {name}: {note}." for name, job in zip(names, jobs, strict=True) for note in job.notes]
    whole = "\n".join(["Read from a fio job file.", *(["Differences from fio:", "", *lines] if lines else [])])
    return whole[:_NOTE_LENGTH]
