"""Runs of one part on one target of the private installation. Import after django.setup()."""

from collections.abc import Mapping

from dev.console import ToolError
from dev.stack.network import await_condition
from webapp.hosts.models import Target
from webapp.plans.document import Part, PlanDocument
from webapp.plans.services import create_plan
from webapp.runs.models import OPEN_RUN_STATES, Run, RunState
from webapp.runs.services import start_run

POLL_S = 0.2


def start(title: str, factors: Mapping[str, str], *, target: str, repeats: int = 1) -> Run:
    """Create a plan and start it on the target with this slug."""
    document = PlanDocument(title=title, parts=(Part(name="main", factors=dict(factors)),), repeats=repeats)
    version = create_plan(document=document, by=None).versions.get()
    return start_run(version=version, targets=[Target.objects.get(slug=target, in_policy=True)], by=None)


def await_end(run: Run, *, limit_s: float) -> bool:
    """Wait until the run has ended; False after the limit."""
    return await_condition(lambda: not is_open(run), limit_s=limit_s, every_s=POLL_S)


def is_open(run: Run) -> bool:
    run.refresh_from_db()
    return run.state in OPEN_RUN_STATES


def require_done(run: Run) -> None:
    """Raise ToolError with the reasons unless the run and all its trials are done."""
    other = [(trial.state, trial.reason) for trial in run.trials.exclude(state="done")]
    if run.state != RunState.DONE or other:
        raise ToolError(f"{run} ended as {run.state}; trials that are not done: {other}")


def run_to_end(title: str, factors: Mapping[str, str], *, target: str, repeats: int = 1, limit_s: float = 600) -> Run:
    """Start a run and wait until it ends. Raises ToolError unless every trial is done."""
    run = start(title, factors, target=target, repeats=repeats)
    if not await_end(run, limit_s=limit_s):
        raise ToolError(f"{title}: not done within {limit_s:.0f} s; the run is {run.state}.")
    require_done(run)
    return run
