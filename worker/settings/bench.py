"""Writing settings of one device so that a worker killed at any point knows what to put back.

    announce in the journal (pending) ─► write ─► read back ─► settle in the journal

A write may make the kernel change other settings (`disturbs`); they are kept and announced
together with the one that is written.
"""

import msgspec

from worker.inventory import sysfs
from worker.journal import Baseline, Journal
from worker.settings import REGISTRY
from worker.settings.base import Setting, SettingError


class Bench:
    """One device under one run."""

    def __init__(self, run: str, device: str, journal: Journal) -> None:
        self.run = run
        self.device = device
        self.stable_id = sysfs.stable_id(device)
        self._journal = journal

    def baselines(self) -> dict[str, Baseline]:
        """By name of setting, in the order in which they are to be written."""
        found = {b.name: b for b in self._journal.baselines(self.run) if b.stable_id == self.stable_id}
        return {name: found[name] for name in sorted(found, key=rank)}

    def write(self, setting: Setting, value: str, *, restoring: bool = False) -> str:
        """Write and read back; what comes back is what is there now. Raises SettingError."""
        kept = self._announce(setting, wished=not restoring)
        try:
            (setting.restore if restoring else setting.apply)(self.device, value)
        finally:
            self._settle(kept)
        return setting.read(self.device)

    def drop(self, baseline: Baseline) -> None:
        self._journal.drop_baseline(baseline)

    def _announce(self, setting: Setting, *, wished: bool) -> list[Baseline]:
        known = self.baselines()
        touched = [setting, *(REGISTRY[name] for name in setting.disturbs if REGISTRY[name].discover(self.device))]
        kept = [self._baseline(each, known.get(each.name), wished=wished and each is setting) for each in touched]
        self._journal.save_baselines(kept)
        return kept

    def _baseline(self, setting: Setting, known: Baseline | None, *, wished: bool) -> Baseline:
        """First touch keeps what is there. So does a touch after somebody else's change: that is the new baseline."""
        now = setting.read(self.device)
        if known is not None and is_ours(known, now):
            return msgspec.structs.replace(known, pending=True, wished=known.wished or wished)
        return Baseline(
            run=self.run,
            stable_id=self.stable_id,
            name=setting.name,
            device=self.device,
            boot_id=self._journal.boot_id,
            survives_reboot=setting.survives_reboot,
            before=now,
            written=now,
            pending=True,
            wished=wished,
        )

    def _settle(self, kept: list[Baseline]) -> None:
        self._journal.save_baselines(
            msgspec.structs.replace(each, pending=False, written=self._read(each)) for each in kept
        )

    def _read(self, baseline: Baseline) -> str:
        """A setting that cannot be read just now counts as not written."""
        try:
            return REGISTRY[baseline.name].read(self.device)
        except SettingError:
            return baseline.before


def is_ours(baseline: Baseline, now: str) -> bool:
    """What is there is what we wrote, or what was there before us, or a write was cut short."""
    return baseline.pending or now in (baseline.written, baseline.before)


def rank(name: str) -> tuple[int, str]:
    setting = REGISTRY.get(name)
    return (setting.rank if setting else 9, name)
