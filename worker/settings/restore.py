"""Putting settings back: only values that are still ours, on the same device, in the same boot."""

import time
from collections.abc import Iterator

from worker.contract.reports import SettingRestored
from worker.inventory import sysfs
from worker.journal import Baseline, Journal
from worker.settings import REGISTRY
from worker.settings.base import SettingError
from worker.settings.bench import Bench, is_ours, rank

GONE = "the device is gone, or another one has its name"
REBOOTED = "the host was restarted since; the restart undid it"
CHANGED = "changed by somebody else since: left as it is"
UNKNOWN = "this worker does not know the setting"


def restore_run(run: str, journal: Journal) -> list[SettingRestored]:
    """Put back everything that a run changed; twice is harmless. What the kernel refuses stays in the journal."""
    return list(_restored(journal.baselines(run), journal))


def restore_all(journal: Journal) -> list[SettingRestored]:
    """Put back what any run changed: at start, at the end, and when the server was not heard for long."""
    return list(_restored(journal.baselines(), journal))


def _restored(baselines: tuple[Baseline, ...], journal: Journal) -> Iterator[SettingRestored]:
    for kept in sorted(baselines, key=lambda b: (b.run, b.device, rank(b.name))):
        # A setting put back earlier may have changed this one's row: take it as it is now.
        current = next((b for b in journal.baselines(kept.run) if _key(b) == _key(kept)), None)
        told = None if current is None else _restore_one(current, journal)
        if told is not None:
            yield told


def _key(baseline: Baseline) -> tuple[str, str]:
    return baseline.stable_id, baseline.name


def _restore_one(kept: Baseline, journal: Journal) -> SettingRestored | None:
    """None where only a side effect was kept and it has undone itself."""
    if obstacle := _obstacle(kept, journal.boot_id):
        journal.drop_baseline(kept)
        return _told(kept, "", obstacle)
    try:
        return _put_back(kept, Bench(kept.run, kept.device, journal))
    except SettingError as error:
        return _told(kept, "", error.message)


def _obstacle(kept: Baseline, boot_id: str) -> str:
    if kept.name not in REGISTRY:
        return UNKNOWN
    if kept.boot_id != boot_id and not kept.survives_reboot:
        return REBOOTED
    if not sysfs.exists(kept.device) or sysfs.stable_id(kept.device) != kept.stable_id:
        return GONE
    return ""


def _put_back(kept: Baseline, bench: Bench) -> SettingRestored | None:
    setting = REGISTRY[kept.name]
    found = setting.read(kept.device)
    if not is_ours(kept, found):
        bench.drop(kept)
        return _told(kept, found, CHANGED)
    if found == kept.before:
        bench.drop(kept)
        return _told(kept, found) if kept.wished else None
    observed = bench.write(setting, kept.before, restoring=True)
    if observed != kept.before:
        return _told(kept, observed, f"the kernel made {observed} of it")
    bench.drop(kept)
    return _told(kept, observed)


def _told(kept: Baseline, observed: str, note: str = "") -> SettingRestored:
    return SettingRestored(
        at=time.time(),
        name=kept.name,
        device=kept.device,
        value=kept.before,
        observed=observed,
        restored=not note,
        note=note,
    )
