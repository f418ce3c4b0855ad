"""Write settings of one subject so that a worker killed at any point can restore them.

    announce in the journal (pending) ─► write ─► read back ─► confirm in the journal
                                           └── failed, or unreadable: stays pending, counts as written

A controller's tool that exceeds its time limit may still take effect later, when the value has already been read. So a
failed write is never confirmed as “nothing was written”, and restoring a pending setting writes the original value.

A write may make the kernel change other settings (`disturbs`); their baselines are saved
together with that of the written setting. The journal stores settings by their `key`.
"""

import msgspec

from worker.journal import Baseline, Journal
from worker.settings import BY_KEY
from worker.settings.base import Setting, SettingError, identity


class SettingWriter:
    """The settings of one subject in one run."""

    def __init__(self, run: str, subject: str, journal: Journal) -> None:
        self.run = run
        self.subject = subject
        self.stable_id = identity(subject)
        self._journal = journal

    def baselines(self) -> dict[str, Baseline]:
        """Baselines by the setting's key, in the order of writing."""
        baselines = {b.name: b for b in self._journal.baselines(self.run) if b.stable_id == self.stable_id}
        return {key: baselines[key] for key in sorted(baselines, key=rank)}

    def write(self, setting: Setting, value: str) -> str:
        """Write the value, read it back and return it. Raises SettingError."""
        announced = self._announce(setting, requested=True)
        setting.apply(self.subject, value)
        self._confirm(announced)
        return setting.read(self.subject)

    def restore(self, setting: Setting, state: str) -> str:
        """Restore a captured state and return the new state. Raises SettingError."""
        announced = self._announce(setting, requested=False)
        setting.restore(self.subject, state)
        self._confirm(announced)
        return setting.capture(self.subject)

    def drop(self, baseline: Baseline) -> None:
        self._journal.drop_baseline(baseline)

    def _announce(self, setting: Setting, *, requested: bool) -> list[Baseline]:
        known = self.baselines()
        touched = [setting, *(BY_KEY[key] for key in setting.disturbs if BY_KEY[key].discover(self.subject))]
        announced = [
            self._baseline(each, known.get(each.key), requested=requested and each is setting) for each in touched
        ]
        self._journal.save_baselines(announced)
        return announced

    def _baseline(self, setting: Setting, known: Baseline | None, *, requested: bool) -> Baseline:
        """Keep the current state as the baseline at the first change, and after a change by another program."""
        now = setting.capture(self.subject)
        if known is not None and is_own_value(known, now):
            return msgspec.structs.replace(known, pending=True, requested=known.requested or requested)
        return Baseline(
            run=self.run,
            stable_id=self.stable_id,
            name=setting.key,
            device=self.subject,
            boot_id=self._journal.boot_id,
            survives_reboot=setting.survives_reboot,
            before=now,
            written=now,
            pending=True,
            requested=requested,
        )

    def _confirm(self, announced: list[Baseline]) -> None:
        self._journal.save_baselines([self._confirmed(baseline) for baseline in announced])

    def _confirmed(self, baseline: Baseline) -> Baseline:
        """A setting that cannot be read now stays pending and is restored later."""
        try:
            written = BY_KEY[baseline.name].capture(self.subject)
        except SettingError:
            return baseline
        return msgspec.structs.replace(baseline, pending=False, written=written)


def is_own_value(baseline: Baseline, now: str) -> bool:
    """True if the worker wrote this state, if it is the original one, or if a write was not confirmed."""
    same = BY_KEY[baseline.name].same
    return baseline.pending or same(now, baseline.written) or same(now, baseline.before)


def needs_restoring(setting: Setting, baseline: Baseline, now: str) -> bool:
    """False if nothing is to be undone: the original value is there and stays, or someone else changed it since."""
    if setting.same(now, baseline.before):
        return baseline.pending and setting.may_lag
    return is_own_value(baseline, now)


def rank(key: str) -> tuple[int, str]:
    setting = BY_KEY.get(key)
    return (setting.rank if setting else 9, key)
