"""Converts a fio job file into a plan.

Jobs that `stonewall` separates become parts, one after another. Jobs that fio runs at the same time become the streams
of one part. The jobs of an exported plan become its parts again.
"""

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import msgspec

from webapp.plans.document import MAX_STREAMS, Order, Part, PartStream, PlanDocument, read_budget
from webapp.plans.factors import (
    AT_ONCE,
    FACTORS,
    MAX_AT_ONCE,
    OF_STREAMS,
    STREAMS_ON,
    Factor,
    FactorKind,
    stream_and_factor,
)
from webapp.plans.jobfile.jobs import Job, read_job, texts, whole_point
from webapp.plans.jobfile.lines import MAX_BYTES, JobFileError, JobProblem, Line, read_lines
from webapp.plans.part_levels import RESERVED_NAMES
from webapp.plans.streams import EACH
from webapp.plans.values import ValueRefused

# A command line of fio as the text of a job file.
#
# As in fio: options before the first `--name` are for all jobs, each `--name` begins a job that has only these and its
# own options, and the jobs run at the same time. One or two dashes, `--bs=4k` and `--bs 4k` mean the same. Several
# commands run one after another.

_COMMAND = re.compile(r"(?:[$#>]\s+)?(?:(?:sudo|time|nice|exec)\s+)*(?:\S*/)?fio\s+['\"]?-")
_FLAGS = frozenset({
    "thread", "group_reporting", "time_based", "norandommap", "stonewall", "wait_for_previous", "exitall", "new_group",
    "minimal", "readonly", "fill_device", "refill_buffers", "zero_buffers", "append-terse", "bandwidth-log",
})  # fmt: skip
_SECTION = re.compile(r"^\s*\[", re.MULTILINE)
_NEXT = (";", "&&", "||", "\n")


def is_command(text: str) -> bool:
    """Whether the text begins with a call of fio, perhaps after a prompt or sudo, and has no section."""
    return bool(_COMMAND.match(text.strip())) and not _SECTION.search(text)


def job_file_of(command: str) -> str:
    """Raises JobFileError."""
    try:
        words = list(_words(command))
    except ValueError as error:
        raise JobFileError([JobProblem(0, "", f"The command cannot be read: {error}.")]) from error
    sections: list[str] = []
    for call in _calls(words):
        sections += _sections(call, first=not sections)
    return "\n".join(sections) + "\n"


def _words(command: str) -> Iterator[str]:
    """The words of the shell. Raises ValueError."""
    for line in command.strip().replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        reader = shlex.shlex(re.sub(r"^\s*[$#>]\s+", "", line), posix=True, punctuation_chars="|;&<>")
        reader.whitespace_split = True
        reader.commenters = "#"
        yield from reader
        yield "\n"


def _calls(words: Sequence[str]) -> Iterator[list[str]]:
    """The arguments of each call of fio, without what a shell does with its output."""
    call: list[str] = []
    calls = [call]
    for word in words:
        if word in _NEXT:
            call = []
            calls.append(call)
        else:
            call.append(word)
    for each in filter(None, calls):
        place = next((index for index, word in enumerate(each) if word.rpartition("/")[2] == "fio"), None)
        if place is None:
            raise JobFileError([JobProblem(0, "", f"`{' '.join(each)[:100]}` is not a call of fio. Remove it.")])
        end = next((index for index, word in enumerate(each) if not word.strip("|<>&")), len(each))
        yield each[place + 1 : end - (each[end - 1] in ("1", "2") and end < len(each))]  # `2>` is two words


def _sections(arguments: Sequence[str], *, first: bool) -> list[str]:
    common: list[str] = []
    jobs: list[tuple[str, list[str]]] = []
    lines = common
    for option, value in _options(arguments):
        if option == "name" and not value.startswith("global"):
            lines = []
            jobs.append((re.sub(r"[\[\]]", " ", value).strip()[:100] or "job", lines))
        elif option == "name":
            lines = common
        else:
            lines.append(f"{option}={value}" if value else option)
    if not jobs:
        raise JobFileError([JobProblem(0, "", "The command has no `--name`, which begins a job.")])
    begin = [] if first else ["stonewall"]
    return [
        "\n".join([f"[{name}]", *(begin if number == 0 else []), *common, *options])
        for number, (name, options) in enumerate(jobs)
    ]


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each option with its value; "" without one."""
    words = list(arguments)
    while words:
        word = words.pop(0)
        option, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not option:
            problem = f"The command names the job file `{word}`. Import the text of that file."
            raise JobFileError([JobProblem(0, "", problem)])
        if not equals and option not in _FLAGS and words and not words[0].startswith("-"):
            value = words.pop(0)
        yield option, value


__all__ = ["MAX_BYTES", "JobFileError", "JobProblem", "read_job_file"]

_TITLE_LENGTH = 200
_NAME_LENGTH = 90
_STREAM_LENGTH = 20
_NOTE_LENGTH = 20_000
_MAX_PARTS = 50
_HEAD = "Read from a fio job file."
_LISTS = ("sequence", "decide")  # of factors
_ABOUT_PLAN = (
    "title", "repeats", "spread_percent", "decide_percent", "repeats_min", "goal", "budget", "order", "retries",
    "stop_after", *_LISTS,
)  # fmt: skip
_NAMES_SHOWN = 4
Stage = tuple[Job, ...]  # jobs that fio runs at the same time


def read_job_file(
    text: str, *, title: str = "", variables: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None
) -> PlanDocument:
    """A plan that measures what the job file would, with the order of its jobs kept. Raises JobFileError.

    The text may also be a command: `fio --name=…`. `variables` are the values of `${NAME}` in the file, `files` the
    texts that it may include, by name. The plan's note lists the differences from fio.
    """
    if is_command(text):
        return _read_command(text, title, variables or {})
    file = read_lines(text, variables or {}, files or {})
    jobs = [read_job(section) for section in file.sections]
    stages, problems = _stages(jobs)
    problems = [*file.problems, *problems, *(problem for job in jobs for problem in job.problems)]
    if not problems and all(job.complete for job in jobs):
        problems = [problem for stage in stages for problem in _together(stage)]
    if problems:
        raise JobFileError(sorted(dict.fromkeys(problems), key=lambda problem: problem.line))
    parts = _parts(stages)
    named = title.strip() or f"fio job {jobs[0].name}"
    document = PlanDocument(
        title=named[:_TITLE_LENGTH], parts=parts, order=Order.LISTED, note=file.note or _note(stages)
    )
    return _as_stated(document, file.plan, keep_title=bool(title.strip()))


def _read_command(command: str, title: str, variables: Mapping[str, str]) -> PlanDocument:
    """Its problems have no lines: those of the job file that is made of it are not the lines of the command."""
    try:
        return read_job_file(job_file_of(command), title=title, variables=variables)
    except JobFileError as error:
        raise JobFileError([replace(problem, line=0) for problem in error.problems]) from error


def _as_stated(document: PlanDocument, lines: Sequence[Line], *, keep_title: bool) -> PlanDocument:
    """The plan with the values from the file's comments."""
    plan_fields: dict[str, object] = {line.option: line.value for line in lines if line.option in _ABOUT_PLAN}
    if keep_title:
        plan_fields.pop("title", None)
    for name in plan_fields.keys() & set(_LISTS):
        plan_fields[name] = [factor.strip() for factor in str(plan_fields[name]).split(",")]
    try:
        plan_fields |= read_budget(str(plan_fields["budget"])) if "budget" in plan_fields else {}
        return msgspec.convert(msgspec.to_builtins(document) | plan_fields, PlanDocument, strict=False)
    except (msgspec.ValidationError, ValueRefused) as error:
        at = next((line.number for line in lines if f"$.{line.option}" in str(error)), 0)
        raise JobFileError([JobProblem(at, "", f"This comment is not understood: {error}.")]) from error


# Which jobs run at the same time, and whether the streams of a trial can do the same.


def _stages(jobs: Sequence[Job]) -> tuple[list[Stage], list[JobProblem]]:
    """`stonewall` begins a stage, and so does `wait_for` if it waits for all jobs of the stage before."""
    stages: list[list[Job]] = []
    problems: list[JobProblem] = []
    for job in jobs:
        awaited = job.text("wait_for")
        running = {each.name for each in stages[-1]} if stages else set()
        begins = job.stonewalled or not stages
        if awaited and not begins and running == {awaited}:
            begins = True
        elif awaited and awaited in running:
            others = ", ".join(f"[{name}]" for name in sorted(running - {awaited}))
            words = f"waits for [{awaited}] while {others} may still run, but the streams of a trial start together."
            problems.append(JobProblem(job.line_of("wait_for"), "wait_for", words))
        elif awaited and not any(each.name == awaited for stage in stages for each in stage):
            words = f"waits for [{awaited}], which is not before it in the file."
            problems.append(JobProblem(job.line_of("wait_for"), "wait_for", words))
        if begins:
            stages.append([job])
        else:
            stages[-1].append(job)
    return [_merged(tuple(stage)) for stage in stages], problems


def _merged(stage: Stage) -> Stage:
    """More equal jobs than a trial has streams are one job with more processes, or on several devices."""
    first = stage[0]
    if len(stage) <= MAX_STREAMS or any(job.problems or job.values != first.values for job in stage):
        return stage
    names = {job.file_names for job in stage}
    count = len(stage)
    values = dict(first.values)
    if len(names) == count and all(job.on_devices for job in stage):
        if count > MAX_AT_ONCE:
            return stage
        values[AT_ONCE] = count
        note = f"{count} equal jobs are one trial on {count} targets"
    else:
        shared = len(names) == 1 and first.shares_files
        values["numjobs"] = first.jobs * count
        for name in ("amount",) if shared else ("amount", "size"):
            if isinstance(value := values.get(name), int):
                values[name] = value * count
        if shared and first.jobs == 1 and not first.pattern.random:
            values["offset_increment"] = 0
        note = f"{count} equal jobs are one job with {count} times as many processes"
    merged = Job(first.section, notes=[*first.notes, note], values=values, given=first.given)
    return (merged,)


def _together(stage: Stage) -> Iterator[JobProblem]:
    """What the streams of a trial cannot do as fio does."""
    first = stage[0]
    if len(stage) == 1:
        return
    if len(stage) > MAX_STREAMS:
        words = f"{len(stage)} jobs would run at the same time, but a trial has at most {MAX_STREAMS} streams."
        yield JobProblem(stage[MAX_STREAMS].section.number, "", words)
        return
    for job in stage[1:]:
        if job.values.get("before") != first.values.get("before"):
            words = (
                f"starts [{job.name}] at another time than [{first.name}], but the streams of a trial start together."
            )
            yield JobProblem(job.line_of("startdelay"), "startdelay", words)
    ends = [(job.values.get("runtime"), job.values.get("ramp")) for job in stage]
    for job in stage:
        if "exitall" in job.given and (len(set(ends)) > 1 or ends[0][0] is None):
            words = (
                f"ends all jobs when [{job.name}] ends, but each stream ends by itself: give all the same `runtime`."
            )
            yield JobProblem(job.line_of("exitall"), "exitall", words)
            break
    devices = [job.file_names for job in stage if job.on_devices]
    if devices and len(set(devices)) not in (1, len(stage)):
        words = f"is a device of some of the jobs with [{first.name}]: streams share one target, or have one each."
        yield JobProblem(first.line_of("filename"), "filename", words)


# Folds the points that Sweetspot wrote for one part into as few parts as possible.

MAX_LEVELS_LENGTH = 1000  # characters of a factor's levels in a plan
Texts = dict[str, str]  # factor -> one level, as a plan writes it


def folded(points: Sequence[Texts]) -> list[Texts]:
    """Full-factorial grids, factor -> levels, that together contain exactly `points`, in their order."""
    alike: dict[frozenset[str], list[Texts]] = {}
    for point in points:
        alike.setdefault(frozenset(point), []).append(point)
    return [_without_defaults(grid) for group in alike.values() for grid in _grids(group)]


def _without_defaults(grid: Texts) -> Texts:
    """The point without default levels. Options and settings have none: only a part that names them has them."""
    return {name: text for name, text in grid.items() if text != _default(FACTORS[name])}


def _default(factor: Factor) -> str:
    return factor.values.write(factor.default) if factor.kind is FactorKind.WORKLOAD else ""


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


# The parts of the plan.


@dataclass(frozen=True)
class _Group:
    """Stages that Sweetspot wrote for one part of a plan; or a single other stage with `part` ""."""

    part: str
    on: tuple[str, ...]
    streams: tuple[str, ...]
    streams_on: str


def _group(stage: Stage) -> _Group:
    stated = {line.option: line.value for line in stage[0].section.stated}
    kinds = tuple(kind.strip() for kind in stated.get("on", "").split(",") if kind.strip())
    streams = _stream_names([_stated_stream(job) or job.name for job in stage]) if len(stage) > 1 else ()
    on_own_devices = len(stage) > 1 and len({job.file_names for job in stage if job.on_devices}) == len(stage)
    return _Group(
        stated.get("part", "")[:_NAME_LENGTH], kinds, streams, stated.get("streams_on", EACH if on_own_devices else "")
    )


def _stated_stream(job: Job) -> str:
    return next((line.value for line in job.section.stated if line.option == "stream"), "")


def _stream_names(wanted: Sequence[str]) -> tuple[str, ...]:
    """Valid and different names of streams: `4k Reads` is `job-4k-reads`."""
    names = []
    for name in wanted:
        plain = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-") or "job"
        plain = plain if plain[0].isalpha() and plain not in RESERVED_NAMES else f"job-{plain}"
        names.append(plain)
    return tuple(_numbered(names, "-", _STREAM_LENGTH))


def _parts(stages: Sequence[Stage]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for group, members in groupby(stages, key=_group):
        if group.part:
            points = _flat([[whole_point(job) for job in stage] for stage in members], group)
            grids = [(group.part, grid) for grid in folded(points)]
        else:
            grids = [
                (" + ".join(job.name for job in stage), point)
                for stage in members
                for point in _flat([[texts(job) for job in stage]], group)
            ]
        parts += [_part(name, grid, group) for name, grid in grids]
    if len(parts) > _MAX_PARTS:
        problem = f"{len(parts)} jobs exceed the maximum of {_MAX_PARTS} parts in a plan."
        raise JobFileError([JobProblem(0, "", problem)])
    names = _numbered([part.name[:_NAME_LENGTH] for part in parts], " ", _NAME_LENGTH + 10)
    return tuple(msgspec.structs.replace(part, name=name) for part, name in zip(parts, names, strict=True))


def _flat(points: Sequence[Sequence[Texts]], group: _Group) -> list[Texts]:
    """Each stage as one point: factors that have the same level in all streams of every stage have no stream's name."""
    if not group.streams:
        return [dict(texts) for (texts,) in points]
    names = {name for stage in points for texts in stage for name in texts}
    shared = {name for name in names if all(_equal(name, stage) for stage in points)}
    shared |= {name for name in names if name not in OF_STREAMS}
    on = {STREAMS_ON: group.streams_on} if group.streams_on else {}
    flat_points = []
    for stage in points:
        flat = {name: text for texts in stage for name, text in texts.items() if name in shared}
        flat |= {
            f"{stream}.{name}": text
            for stream, texts in zip(group.streams, stage, strict=True)
            for name, text in texts.items()
            if name not in shared
        }
        flat_points.append(flat | on)
    return flat_points


def _equal(name: str, stage: Sequence[Texts]) -> bool:
    default = _default(FACTORS[name])
    return len({texts.get(name, default) for texts in stage}) == 1


def _part(name: str, grid: Texts, group: _Group) -> Part:
    by_stream: dict[str, Texts] = {stream: {} for stream in group.streams}
    factors: Texts = {}
    for factor, text in grid.items():
        stream, plain = stream_and_factor(factor)
        (by_stream[stream] if stream else factors)[plain] = text
    streams = tuple(PartStream(name=stream, factors=of_stream) for stream, of_stream in by_stream.items())
    part = Part(name=name, factors=factors, streams=streams)
    return msgspec.structs.replace(part, on=group.on) if group.on else part


def _numbered(wanted: Sequence[str], between: str, longest: int) -> list[str]:
    """The names, cut to the length; repeated names get a number."""
    names: dict[str, None] = {}
    next_number: dict[str, int] = {}
    for name in wanted:
        numbered = name[:longest]
        while numbered in names:
            next_number[name] = next_number.get(name, 1) + 1
            ending = f"{between}{next_number[name]}"
            numbered = f"{name[: longest - len(ending)]}{ending}"
        names[numbered] = None
    return list(names)


def _note(stages: Sequence[Stage]) -> str:
    """The descriptions of the jobs, and the differences from fio, each once with the jobs that it concerns."""
    placed = [(job, stage) for stage in stages for job in stage]
    names = _numbered([job.name for job, _ in placed], " ", _NAME_LENGTH)
    by_note: dict[str, list[str]] = {}
    for name, (job, stage) in zip(names, placed, strict=True):
        for note in dict.fromkeys([*job.notes, *_beside(job, stage)]):
            by_note.setdefault(note, []).append(name)
    lines = [f"- {_named(note, named, len(placed))}." for note, named in by_note.items()]
    descriptions = [f"{name}: {job.text('description')}" for name, (job, _) in zip(names, placed, strict=True)]
    descriptions = [text for text in descriptions if not text.endswith(": ")]
    whole = "\n".join(
        [
            _HEAD,
            *(["", *descriptions] if descriptions else []),
            *(["Differences from fio:", "", *lines] if lines else []),
        ]
    )
    return whole[:_NOTE_LENGTH]


def _named(note: str, names: Sequence[str], count: int) -> str:
    """The note with the names of its jobs, unless it is about all."""
    if len(names) == count:
        return note
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{', '.join(names[:_NAMES_SHOWN])}{more}: {note}"


def _beside(job: Job, stage: Stage) -> Iterator[str]:
    """Differences that depend on the jobs that run at the same time."""
    if "exitall" in job.given:
        yield "`exitall` without effect: all jobs that run at the same time have the same end"
    if len(stage) == 1 or job.on_devices:
        return
    if job.file_names and any(job.file_names == other.file_names for other in stage if other is not job):
        yield "fio's jobs share their file; in a directory, each stream has files of its own"
    else:
        yield "fio's jobs have files of their own, as streams in a directory; on a device, streams share its blocks"
