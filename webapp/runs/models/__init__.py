"""Runs, their trials and the attempts at them. The transitions between states are in `runs.states`."""

from webapp.runs.models.attempt import Attempt, HostAction, SettingChange, TargetLock
from webapp.runs.models.history import Note, Transition
from webapp.runs.models.run import (
    ACTIVE_ATTEMPT_STATES,
    ACTIVE_TRIAL_STATES,
    ENDED_TRIAL_STATES,
    OPEN_RUN_STATES,
    AttemptKind,
    AttemptState,
    Priority,
    Run,
    RunState,
    TrialState,
)
from webapp.runs.models.trial import FurtherTarget, Trial

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
