"""Converts a job file into a plan: each job becomes a part; the jobs of an exported part become that part again.

Jobs that fio would run at the same time are refused, because a trial has one workload; `stonewall` separates them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import msgspec

from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.factors import FACTORS
from webapp.plans.jobfile.job import Job, read_job, texts, whole_point
from webapp.plans.jobfile.lines import JobFileError, JobProblem, Line, read_lines

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
