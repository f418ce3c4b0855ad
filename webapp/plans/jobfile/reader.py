"""The whole file -> a plan: each job becomes a part.

Jobs that fio would run at the same time are refused: a trial has one workload. Put `stonewall` into each.
"""

from collections.abc import Sequence
from itertools import pairwise

from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.jobfile.job import Job, read_job, texts
from webapp.plans.jobfile.lines import JobFileError, JobProblem, sections

_TITLE_LENGTH = 200


def read_job_file(text: str, *, title: str = "") -> PlanDocument:
    """A plan that measures what the job file would, with the order of its jobs kept. Raises JobFileError.

    What fio would do otherwise is said in the plan's note.
    """
    jobs = [read_job(section) for section in sections(text)]
    problems = [*_simultaneous(jobs), *(problem for job in jobs for problem in job.problems)]
    if problems:
        raise JobFileError(sorted(dict.fromkeys(problems), key=lambda problem: problem.line))
    named = title.strip() or f"fio job {jobs[0].section.name}"
    names = _part_names(jobs)
    return PlanDocument(
        title=named[:_TITLE_LENGTH],
        parts=tuple(Part(name=name, factors=texts(job)) for name, job in zip(names, jobs, strict=True)),
        order=Order.LISTED,
        note=_note(names, jobs),
    )


def _simultaneous(jobs: Sequence[Job]) -> list[JobProblem]:
    return [
        JobProblem(
            job.section.number,
            "",
            f"[{job.section.name}] would run at the same time as [{before.section.name}], which Sweetspot does not do. "
            f"Put `stonewall` into [{job.section.name}] to run it afterwards.",
        )
        for before, job in pairwise(jobs)
        if not job.stonewalled
    ]


def _part_names(jobs: Sequence[Job]) -> list[str]:
    """The sections' names, with a number where one comes again."""
    names: list[str] = []
    for job in jobs:
        wanted = job.section.name[:90]
        numbered = (f"{wanted} {number}" for number in range(2, len(jobs) + 2))
        names.append(next(name for name in (wanted, *numbered) if name not in names))
    return names


def _note(names: Sequence[str], jobs: Sequence[Job]) -> str:
    lines = [f"- {name}: {note}." for name, job in zip(names, jobs, strict=True) for note in job.notes]
    return "\n".join(["Read from a fio job file.", *(["What fio would do otherwise:", "", *lines] if lines else [])])
