"""Restarts of the guest during a run, one orderly and one by a power cut; the run continues to its end."""

from dev.console import step
from dev.lab.storage_host import BAYS
from dev.lab.system import System, differences, locks, not_restored
from webapp.plans.document import Part, PlanDocument
from webapp.runs.models import RunState
from worker.settings import BY_KEY

DOCUMENT = PlanDocument(
    title="Restarts",
    repeats=2,
    parts=(
        Part(
            name="main",
            factors={
                "pattern": "randread", "ioengine": "psync", "block_size": "4k", "runtime": "8s",
                "scheduler": "none, mq-deadline, bfq", "read_ahead_kb": "64", "nr_requests": "32",
                "drive_write_cache": "write through", "vm.dirty_ratio": "30",
            },
        ),
    ),
)  # fmt: skip
CUT_SHORT = {"worker_stopped", "worker_died"}


def restarts(system: System) -> list[str]:
    """The problems. The worker reads no value of a setting that a power cut has reset; the inventory shows it."""
    before = system.take_inventory()
    run = system.start(DOCUMENT, BAYS[0])
    with step("restarting the guest during the run"):
        system.await_measuring(run, done=1)
        system.machine.reboot()
        system.await_measuring(run, done=2)
    with step("cutting its power during the run"):
        system.await_measuring(run, done=3)
        system.machine.reset()
        system.finish(run)
    other = [t for t in run.trials.exclude(state="done") if t.reason_code not in CUT_SHORT]
    problems = [f"{run}, trial {t.number}: {t.state} {t.reason_code}: {t.reason}" for t in other]
    done = run.trials.filter(state="done").count()
    if run.state not in (RunState.DONE, RunState.FAILED) or done < run.trial_count - 2:
        problems.append(f"{run} ended as {run.state} with {done} of {run.trial_count} trials: {run.reason}")
    left = [text for change, text in not_restored(run) if change.observed or BY_KEY[change.name].survives_reboot]
    return [*problems, *left, *differences(before, system.take_inventory()), *locks()]
