"""Restore settings: only values that nobody else has changed, on the same device, in the same boot.

A setting that cannot be restored stays in the journal. The worker tries again at each start, while it is idle, and at
the end of each run.
"""

import time
from collections.abc import Iterator

import msgspec

from worker.contract.base import MAX_TEXT
from worker.contract.items import SettingRestored
from worker.journal import Baseline, Journal
from worker.process.scope import stuck_scopes
from worker.settings import BY_KEY
from worker.settings.base import SettingError, find, in_order
from worker.settings.writer import SettingWriter, is_own_value, needs_restoring, rank

AGAIN = "the worker tries again at its next start, while it is idle and at the end of the next run"
ABSENT = f"the device is absent, or another device has its name; {AGAIN}"
REBOOTED = "the restart of the host has already reset it"
CHANGED = "another program or person has changed it since; the worker left it unchanged"
UNKNOWN = f"this version of the worker does not know the setting; {AGAIN}"
BY_HAND = "by-hand"  # the run id of settings that a person changed outside any run: see `by_hand`


def restore_run(run: str, journal: Journal) -> list[SettingRestored]:
    """Restore everything that a run changed. Safe to call twice. Settings that fail stay in the journal."""
    return list(restored(journal.baselines(run), journal))


def restore_all(journal: Journal, *, by_hand: bool = False) -> list[SettingRestored]:
    """Restore what all runs changed: at the worker's start, at its end, and if the server is silent for long.

    Settings changed by hand are restored only with `by_hand`.
    """
    return list(restored(tuple(each for each in journal.baselines() if by_hand or each.run != BY_HAND), journal))


def restore_others(run: str, journal: Journal) -> list[SettingRestored]:
    """Restore what other runs left changed, such as settings of a drive that was absent when they ended."""
    return list(restored(tuple(each for each in journal.baselines() if each.run not in (run, BY_HAND)), journal))


def restored(baselines: tuple[Baseline, ...], journal: Journal) -> Iterator[SettingRestored]:
    known = {(baseline.run, *_key(baseline)) for baseline in journal.baselines()}
    todo = sorted(baselines, key=_when)
    while todo:
        baseline = todo.pop(0)
        # Restoring an earlier setting may have changed this row: read it again.
        current = next((b for b in journal.baselines(baseline.run) if _key(b) == _key(baseline)), None)
        record = None if current is None else _restore_one(current, journal)
        if record is not None:
            yield record
        # Restoring this one may have changed settings that had no row yet.
        effects = [each for each in journal.baselines(baseline.run) if (each.run, *_key(each)) not in known]
        known |= {(each.run, *_key(each)) for each in effects}
        todo = sorted((*todo, *effects), key=_when)


def _when(baseline: Baseline) -> tuple[str, int, str, tuple[int, str]]:
    """Sort key for restoring: devices, controllers, host. Settings that were changed first are restored last."""
    scope, subject = in_order(baseline.device)
    return baseline.run, -scope, subject, rank(baseline.name)


def _key(baseline: Baseline) -> tuple[str, str]:
    return baseline.stable_id, baseline.name


def _restore_one(baseline: Baseline, journal: Journal) -> SettingRestored | None:
    """None if there is nothing to restore and nothing to report."""
    if baseline.boot_id != journal.boot_id and not baseline.survives_reboot:
        journal.drop_baseline(baseline)
        return _told(baseline, "", REBOOTED)
    if why := obstacle(baseline, journal):
        return _told(baseline, "", why)
    now = msgspec.structs.replace(baseline, device=find(baseline.stable_id, baseline.device) or baseline.device)
    try:
        return _put_back(now, SettingWriter(baseline.run, now.device, journal))
    except SettingError as error:
        return _told(baseline, "", error.message)


def plan_words(baseline: Baseline, journal: Journal) -> str:
    """What restoring this setting would do, for a person to confirm."""
    setting = BY_KEY.get(baseline.name)
    name = f"{baseline.name} of {baseline.device or 'the host'}"
    if baseline.boot_id != journal.boot_id and not baseline.survives_reboot:
        return f"{name}: no write; {REBOOTED}"
    if why := obstacle(baseline, journal):
        return f"{name}: cannot be restored now: {why}"
    return f"{name}: restore {setting.shown(baseline.before) if setting else baseline.before}"


def obstacle(baseline: Baseline, journal: Journal) -> str:
    """Why the setting cannot be restored now; "" if the worker can try.

    A write to the queue of a quarantined drive could wait for ever.
    """
    if baseline.name not in BY_KEY:
        return UNKNOWN
    if stuck := next((scope for scope in stuck_scopes(journal.folder) if baseline.stable_id in scope.drives), None):
        return f"the drive is quarantined, because its program {stuck.name} cannot be killed; {AGAIN}"
    return ABSENT if find(baseline.stable_id, baseline.device) is None else ""


def _put_back(baseline: Baseline, writer: SettingWriter) -> SettingRestored | None:
    setting = BY_KEY[baseline.name]
    if setting.vanished(baseline.device):
        writer.drop(baseline)
        return None
    now = setting.capture(baseline.device)
    if not is_own_value(baseline, now):
        writer.drop(baseline)
        return _told(baseline, now, CHANGED)
    if not needs_restoring(setting, baseline, now):
        writer.drop(baseline)
        return _told(baseline, now) if baseline.requested else None
    observed = writer.restore(setting, baseline.before)
    if not setting.same(observed, baseline.before):
        return _told(baseline, observed, f"{setting.taken_by} set it to {setting.shown(observed)} instead")
    writer.drop(baseline)
    return _told(baseline, observed)


def _told(baseline: Baseline, observed: str, note: str = "") -> SettingRestored:
    setting = BY_KEY.get(baseline.name)
    shown = setting.shown if setting else str
    return SettingRestored(
        at=time.time(),
        name=baseline.name,
        device=baseline.device,
        value=shown(baseline.before)[:MAX_TEXT],
        observed=shown(observed)[:MAX_TEXT],
        restored=not note,
        note=note,
    )
