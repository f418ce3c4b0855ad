"""A host whose settings are files."""

from pathlib import Path

from worker.contract.items import SettingRecord
from worker.contract.orders import SettingRequest
from worker.guard.tests import rig
from worker.journal import Journal
from worker.kernel.targets import OpenTarget
from worker.policy import Policy
from worker.settings import BY_KEY, session
from worker.settings.base import SettingScope


class Host:
    """A loop device, a policy that allows all its settings, and a journal."""

    def __init__(self, directory: Path, device: str, file: Path) -> None:
        self.directory, self.path, self.file = directory, device, file
        self.device = Path(device).name
        self.allowed = rig.load(directory, rig.block(device, file, settings=["*", "write_cache"]))
        self.journal = Journal(directory / "journal.db")

    def apply_settings(
        self, values: dict[str, str], run: str = "run", policy: Policy | None = None
    ) -> list[SettingRecord]:
        requests = [SettingRequest(name=name, value=value) for name, value in values.items()]
        open_targets = {0: OpenTarget(path=self.path, device=self.device, target="disk")}
        return session.apply_settings(requests, run, open_targets, policy or self.allowed, self.journal)

    def state(self) -> dict[str, str]:
        """Of everything that a loop device has."""
        own = {key: s for key, s in BY_KEY.items() if s.scope is SettingScope.DEVICE and s.discover(self.device)}
        return {name: setting.read(self.device) for name, setting in own.items()}

    def write(self, name: str, value: str) -> None:
        Path(f"/sys/block/{self.device}/queue/{name}").write_text(value)
