"""Child processes that cannot outlive their worker: scopes, and the warden that watches over each."""

from worker.process.child import WARDEN_DIED, Child
from worker.process.scope import Scope, isolation, kill_leftovers, open_scope

__all__ = ["WARDEN_DIED", "Child", "Scope", "isolation", "kill_leftovers", "open_scope"]
