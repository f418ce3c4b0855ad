"""What the pages of plans send to their scripts; `frontend/src/payloads/plan.ts` checks the same shapes."""

from webapp.screens.payloads import Payload


class PlanJob(Payload, frozen=True, kw_only=True):
    """One trial as fio would get it; `prefill_text` is "" where nothing is written first."""

    trial: int  # number in the order
    title: str
    target: str
    command: str
    job_text: str
    prefill_text: str


class PlanJobs(Payload, frozen=True, kw_only=True):
    """The trials of the page that is shown; `chosen` is the number of the one whose job is shown first."""

    chosen: int
    jobs: tuple[PlanJob, ...]


class PlanProblem(Payload, frozen=True, kw_only=True):
    """`place` as in `plans.problems.FieldProblem`; "" is the whole plan."""

    place: str
    message: str


class PlanAnswer(Payload, frozen=True, kw_only=True):
    """What a typed plan would do: `html` replaces the preview, "" leaves the last one that was understood."""

    problems: tuple[PlanProblem, ...]
    html: str
    said: str  # for screen readers, one short line
