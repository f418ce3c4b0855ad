"""The page of the states of runs, trials and attempts."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from django.db.models import TextChoices

from dev.docs.table import table
from webapp.runs.models import AttemptState, RunState, TrialState
from webapp.runs.states import ATTEMPT_TRANSITIONS, RUN_TRANSITIONS, TRIAL_REVIVALS, TRIAL_TRANSITIONS

State = TypeVar("State", RunState, TrialState, AttemptState)
HEAD = """# States

The states of runs, trials and attempts, and the states that can follow each of them. Each change is recorded with its
time, its reason and the person, if a person caused it. The API and exports use the key.

This page is generated from the tables that the server uses.
"""
MEANINGS: Mapping[TextChoices, str] = {
    RunState.QUEUED: "waits for its hosts",
    RunState.RUNNING: "its trials are sent to hosts",
    RunState.PAUSED: "starts no trials until it is resumed; settings are restored if the pause is long",
    RunState.CLOSING: "all trials have ended; hosts restore settings and remove layouts",
    RunState.DONE: "ended; the page of the run says how many trials failed",
    RunState.FAILED: "ended; no trial is done, too many trials failed, or settings could not be restored",
    RunState.CANCELLED: "ended by a person, or at its deadline",
    TrialState.PLANNED: "not sent to a host yet",
    TrialState.DISPATCHED: "the order was sent to the host",
    TrialState.ACCEPTED: "the worker has the order in its journal",
    TrialState.RUNNING: "the worker prepares or measures",
    TrialState.DONE: "has results",
    TrialState.FAILED: "has no results; the reason is recorded",
    TrialState.CANCELLED: "ended by a person, or no longer needed or possible; the reason is recorded",
    TrialState.LOST: "the lease ended without a report; retried if the plan allows it and nothing is destroyed",
    AttemptState.DISPATCHED: "the order was sent to the host",
    AttemptState.ACCEPTED: "the worker has the order in its journal",
    AttemptState.RUNNING: "the worker prepares or measures",
    AttemptState.DONE: "ended with results",
    AttemptState.FAILED: "ended with an error",
    AttemptState.CANCELLED: "ended by a person or by the server",
    AttemptState.LOST: "the lease ended without a report; a late report revives it if there is no newer attempt",
}


def page() -> str:
    return (
        f"{HEAD}\n## Run\n\n{_table(RUN_TRANSITIONS)}\n## Trial\n\n{_table(TRIAL_TRANSITIONS)}\n"
        f"A late report of a lost attempt can continue a trial that is already {_names(TRIAL_REVIVALS)}.\n"
        f"\n## Attempt\n\nEach try at a trial is an attempt.\n\n{_table(ATTEMPT_TRANSITIONS)}"
    )


def _table(transitions: Mapping[State, frozenset[State]]) -> str:
    rows = [(f"`{state}`", MEANINGS[state], _names(after)) for state, after in transitions.items()]
    return table(("state", "meaning", "next"), rows)


def _names(states: Iterable[str]) -> str:
    return ", ".join(f"`{state}`" for state in sorted(map(str, states))) or "–"
