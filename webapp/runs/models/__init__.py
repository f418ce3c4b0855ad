"""Runs, their trials and the attempts at them. The transitions between states are in `runs.states`."""

from webapp.runs.models.attempt import Attempt, HostAction, Note, SettingChange, TargetLock, Transition
from webapp.runs.models.run import (
    ACTIVE_ATTEMPT_STATES,
    ACTIVE_TRIAL_STATES,
    ENDED_TRIAL_STATES,
    OPEN_RUN_STATES,
    AttemptKind,
    AttemptState,
    FurtherTarget,
    Priority,
    Run,
    RunState,
    Trial,
    TrialState,
)

__all__ = [
    "ACTIVE_ATTEMPT_STATES",
    "ACTIVE_TRIAL_STATES",
    "ENDED_TRIAL_STATES",
    "OPEN_RUN_STATES",
    "Attempt",
    "AttemptKind",
    "AttemptState",
    "FurtherTarget",
    "HostAction",
    "Note",
    "Priority",
    "Run",
    "RunState",
    "SettingChange",
    "TargetLock",
    "Transition",
    "Trial",
    "TrialState",
]
