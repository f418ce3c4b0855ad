"""A host whose settings are files."""

from pathlib import Path

from worker import policy
from worker.contract.items import SettingRecord
from worker.contract.orders import SettingRequest
from worker.journal import Journal
from worker.kernel.targets import OpenTarget
from worker.settings import REGISTRY, SETTING_NAMES, session
from worker.settings.base import SettingScope

HOST_WIDE = {name: setting for name, setting in REGISTRY.items() if setting.scope is SettingScope.HOST}


class Machine:
    def __init__(self, directory: Path, allowed: list[str]) -> None:
        path = directory / "policy.toml"
        path.write_text(f"[host]\nsettings = {allowed}\n".replace("'", '"'))
        path.chmod(0o600)
        self.policy = policy.load(path, SETTING_NAMES)
        self.directory = directory
        self.journal = Journal(directory / "journal.db")

    def apply_settings(self, values: dict[str, str]) -> list[SettingRecord]:
        requests = [SettingRequest(name=name, value=value) for name, value in values.items()]
        open_targets = {0: OpenTarget(path="/srv/a", device="", target="a")}
        return session.apply_settings(requests, "run", open_targets, self.policy, self.journal)
