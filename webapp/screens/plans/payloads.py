"""Data that the pages of plans send to their scripts; `frontend/src/payloads/plan.ts` has the same types."""

from webapp.screens.payloads import Payload


class PlanJob(Payload, frozen=True, kw_only=True):
    """The job of one trial; `prefill_text` is "" without a prefill, `steps_text` without steps before it."""

    trial: int  # number in the order
    title: str
    target: str
    command: str
    job_text: str
    prefill_text: str
    steps_text: str


class PlanJobs(Payload, frozen=True, kw_only=True):
    """The trials of the current page; `chosen` is the number of the trial whose job is shown first."""

    chosen: int
    jobs: tuple[PlanJob, ...]


class PlanProblem(Payload, frozen=True, kw_only=True):
    """`place` as in `plans.problems.FieldProblem`; "" is the whole plan."""

    place: str
    message: str


class PlanAnswer(Payload, frozen=True, kw_only=True):
    """The preview of the input: `html` replaces the displayed preview; "" keeps it, because the input is invalid."""

    problems: tuple[PlanProblem, ...]
    warnings: tuple[PlanProblem, ...]  # factors without effect
    html: str
    said: str  # for screen readers, one short line
