"""From the settings that are to those that a trial wants.

What a trial's devices look like depends on their baseline and on its wishes alone, not on
the trials before: what earlier trials of the run changed and this one does not ask for goes
back first. Another run's settings are put back whole. All settings of a device are written
in order of their rank, because changing the scheduler resets others.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence

from worker.contract.orders import SettingWish
from worker.contract.reports import SettingRecord
from worker.journal import Baseline, Journal
from worker.place import Place
from worker.policy import Policy
from worker.settings import REGISTRY
from worker.settings.base import Setting, SettingError, SettingFailed
from worker.settings.bench import Bench, is_ours, rank
from worker.settings.restore import restore_all, restore_run

__all__ = ["SettingFailed", "restore_all", "restore_run", "settle"]

log = logging.getLogger(__name__)


def settle(
    wishes: Sequence[SettingWish], run: str, places_by_leg: Mapping[int, Place], policy: Policy, journal: Journal
) -> list[SettingRecord]:
    """Bring every device of the legs, and any that the run touched before, to what is wished. Raises SettingFailed."""
    wanted = _by_device(wishes, places_by_leg, policy)
    _put_back_other_runs(run, journal)
    touched = {baseline.device for baseline in journal.baselines(run)}
    records: list[SettingRecord] = []
    try:
        for device in sorted(touched | set(wanted)):
            _settle_device(Bench(run, device, journal), wanted.get(device, {}), records)
    except SettingError as error:
        raise SettingFailed(error.code, error.message, tuple(records)) from error
    return records


def _put_back_other_runs(run: str, journal: Journal) -> None:
    for other in sorted({baseline.run for baseline in journal.baselines()} - {run}):
        for told in restore_run(other, journal):
            log.info("Run %s: %s of %s put back: %s", other, told.name, told.device, told.note or told.observed)


# ---- what is wished, and may it be


def _by_device(wishes: Iterable[SettingWish], places: Mapping[int, Place], policy: Policy) -> dict[str, dict[str, str]]:
    wanted: dict[str, dict[str, str]] = {}
    for wish in wishes:
        device = _allowed_device(wish, places, policy)
        values = wanted.setdefault(device, {})
        if values.setdefault(wish.name, wish.value) != wish.value:
            raise SettingFailed(
                "setting_conflict", f"{wish.name} of {device} is to be {values[wish.name]} and {wish.value} at once."
            )
    return wanted


def _allowed_device(wish: SettingWish, places: Mapping[int, Place], policy: Policy) -> str:
    if wish.name not in REGISTRY:
        raise SettingFailed("setting_unknown", f"{wish.name!r} is no setting of this worker; it knows {_known()}.")
    place = places.get(wish.leg)
    if place is None:
        raise SettingFailed("setting_refused", f"{wish.name} is wished for leg {wish.leg}, which the trial lacks.")
    entry = policy.entry(place.target)
    if entry is None or not entry.allows_setting(wish.name):
        raise SettingFailed(
            "setting_not_allowed",
            f"{policy.path} does not allow changing {wish.name} of target {place.target!r}: add it to its settings.",
        )
    if not place.device:
        raise SettingFailed("setting_refused", f"{wish.name}: no single block device lies under {place.path}.")
    if not REGISTRY[wish.name].discover(place.device):
        raise SettingFailed("setting_refused", f"{place.device} has no {wish.name}.")
    return place.device


def _known() -> str:
    return ", ".join(REGISTRY)


# ---- one device


def _settle_device(bench: Bench, wanted: Mapping[str, str], records: list[SettingRecord]) -> None:
    if _must_start_afresh(bench.baselines(), wanted):
        _put_back(bench, tuple(bench.baselines()), records)
    else:
        _put_back(bench, tuple(name for name in bench.baselines() if name not in wanted), records, keep_effects=wanted)
    for name in sorted(wanted, key=rank):
        _apply(bench, REGISTRY[name], wanted[name], records)


def _must_start_afresh(kept: Mapping[str, Baseline], wanted: Mapping[str, str]) -> bool:
    """A disturbed setting that an earlier trial wished for and this one does not: its value now is nobody's default.

    Going to the baseline and coming back makes the kernel choose its default again.
    """
    disturbed = {name for wish in wanted if wish in kept for name in REGISTRY[wish].disturbs}
    return any(kept[name].wished and name not in wanted for name in disturbed if name in kept)


def _put_back(
    bench: Bench, names: Iterable[str], records: list[SettingRecord], *, keep_effects: Iterable[str] = ()
) -> None:
    """Back to the baseline, except what is only the effect of a setting that stays."""
    effects = {name for wish in keep_effects for name in REGISTRY[wish].disturbs}
    for name in names:
        kept = bench.baselines().get(name)
        if kept is None or name not in REGISTRY or (name in effects and not kept.wished):
            continue
        setting = REGISTRY[name]
        found = setting.read(bench.device)
        if found != kept.before and is_ours(kept, found):
            observed = bench.write(setting, kept.before, restoring=True)
            records.append(_record(bench, setting, found, kept.before, observed))
            _refuse_clamped(bench, setting, kept.before, observed, same=observed == kept.before)
        bench.drop(kept)


def _apply(bench: Bench, setting: Setting, value: str, records: list[SettingRecord]) -> None:
    before = setting.read(bench.device)
    observed = before if before == value else bench.write(setting, value)
    records.append(_record(bench, setting, before, value, observed))
    _refuse_clamped(bench, setting, value, observed, same=setting.verify(value, observed))


def _refuse_clamped(bench: Bench, setting: Setting, asked: str, observed: str, *, same: bool) -> None:
    if not same:
        raise SettingError(
            "setting_clamped",
            f"{setting.name} of {bench.device} was to be {asked}; the kernel took it and made {observed} of it.",
        )


def _record(bench: Bench, setting: Setting, before: str, asked: str, observed: str) -> SettingRecord:
    return SettingRecord(
        at=time.time(), name=setting.name, device=bench.device, before=before, asked=asked, observed=observed
    )
