"""The host's policy file: which targets, pools and settings the administrator allows. Imports only the contract."""

from worker.policy.file import PolicyError, load
from worker.policy.model import Policy, PolicyEntry, SettingNames
from worker.policy.pools import Pool

__all__ = ["Policy", "PolicyEntry", "PolicyError", "Pool", "SettingNames", "load"]
