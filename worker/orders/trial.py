"""Carry out one trial, from the guard to the results.

    purge ─► guard ─► layout ─► settings ─► prefill ─► steps ─► drop caches ─► observe ─► run (all at once) ─► done
      └────────┴──────────┴──────────┴────────────┴─────────┴──────────┴───────────┴──► failed(code, words) | cancelled

A trial on several hosts waits before the run until all of them are ready, and starts its streams at the common start.

Nothing here talks to a server: every event is an item given to `emit`, so the same code runs a trial of an
order and a trial from a file. Caches are dropped after the steps, which would fill them again. After the
steps, a trial that would read unwritten parts of files is refused. The member of an array that a stream rebuilds
is removed right before the run. Settings and the layout stay until the run is closed, or until a trial needs
another layout.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from worker.contract.base import Failed
from worker.contract.items import Finished, Outcome, PhaseName
from worker.contract.orders import TrialOrder
from worker.orders import admission, measurement, preparation
from worker.orders.context import OrderContext, failed, finished
from worker.orders.trial_state import TrialState, TrialStopped

log = logging.getLogger(__name__)


class Stage(NamedTuple):
    """`run` raises Failed or TrialStopped. `phase` is entered first; without it, `run` enters its phases itself,
    because they have fields, or because there may be nothing to do."""

    run: Callable[[TrialState], None]
    phase: PhaseName | None = None


STAGES = (
    Stage(admission.allow, PhaseName.GUARD),
    Stage(admission.purge),
    Stage(admission.lay_out),
    Stage(admission.hold_targets),
    Stage(admission.apply_settings, PhaseName.SETTINGS),
    Stage(preparation.prefill),
    Stage(preparation.run_steps),
    Stage(preparation.observe),
    Stage(measurement.await_common_start),
    Stage(measurement.remove_members),
    Stage(measurement.run_streams, PhaseName.RUN),
    Stage(measurement.check_settings),
)


def carry_out(order: TrialOrder, context: OrderContext) -> Finished:
    """Run until the end. Failures become the outcome; only faults of the worker are raised."""
    state = TrialState(order, context)
    with state.kernel:
        try:
            with state.held:
                for stage in STAGES:
                    if stage.phase:
                        state.enter(stage.phase)
                    stage.run(state)
            return finished(Outcome.DONE)
        except TrialStopped:
            return _stopped(state)
        except Failed as error:
            log.warning("The trial failed: %s: %s", error.code, error)
            return _stopped(state) if state.control.reason else failed(error)
        finally:
            state.drives.end(state.wear.end())
            state.emit_kernel_log()


def _stopped(state: TrialState) -> Finished:
    reason = state.control.reason
    assert reason is not None
    log.warning("The trial was stopped: %s: %s", reason.code, reason.message)
    return finished(reason.outcome, reason.code, reason.message)
