"""Child programs that cannot outlive the worker. Each runs in a scope, under a supervisor, with limits."""

from worker.process.child import SUPERVISOR_DIED, Child
from worker.process.run import Limits, Reason, Stopped, follow
from worker.process.scope import (
    Scope,
    StuckScope,
    forget_scope,
    isolation,
    kill_leftovers,
    open_scope,
    stuck_scopes,
)
from worker.process.tools import ToolError, ToolMissing, ToolOutput, ask, find

__all__ = [
    "SUPERVISOR_DIED",
    "Child",
    "Limits",
    "Reason",
    "Scope",
    "Stopped",
    "StuckScope",
    "ToolError",
    "ToolMissing",
    "ToolOutput",
    "ask",
    "find",
    "follow",
    "forget_scope",
    "isolation",
    "kill_leftovers",
    "open_scope",
    "stuck_scopes",
]  # fmt: skip
