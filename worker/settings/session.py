"""Apply a trial's settings.

The result depends only on the host's baseline and on the trial's settings, not on earlier
trials: settings that earlier trials of the run changed and this trial does not set are restored
first. Settings of other runs are restored completely. Settings of the host are written first, then
those of controllers, then those of devices. The settings of one subject are written in order of
rank, because changing the scheduler resets others. At the end every setting is read again, to
detect changes by other settings or other programs.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from worker.contract.base import MAX_TEXT
from worker.contract.items import SettingRecord
from worker.contract.orders import SettingRequest
from worker.journal import Baseline, Journal
from worker.kernel.targets import OpenTarget
from worker.policy import Policy
from worker.settings import BY_KEY, REGISTRY
from worker.settings.base import Setting, SettingError, SettingFailed, SettingScope, in_order, named, subjects_of
from worker.settings.restore import restore_all, restore_others, restore_run
from worker.settings.writer import SettingWriter, needs_restoring, rank

# Check the policy for a setting: by target for devices and controllers, else by host.


def refuse_unallowed(setting: Setting, open_target: OpenTarget, policy: Policy) -> None:
    """Raises SettingError, which names the place in the policy that must allow the setting."""
    if setting.scope is SettingScope.HOST:
        if setting.name not in policy.host_settings:
            raise SettingError(
                "setting_not_allowed",
                f"{policy.path} does not allow changing {setting.name} of the host: add it to settings under [host].",
            )
        return
    for target in [drive.id for drive in policy.drives(open_target.target)] or [open_target.target]:
        _refuse_unlisted(setting, target, policy)


def _refuse_unlisted(setting: Setting, target: str, policy: Policy) -> None:
    entry = policy.entry(target)
    if entry is None or setting.name not in entry.settings:
        by_name = " by name; “*” does not include it" if setting.by_name_only else ""
        raise SettingError(
            "setting_not_allowed",
            f"{policy.path} does not allow changing {setting.name} of target {target!r}: "
            f"add it to its settings{by_name}.",
        )


__all__ = ["SettingFailed", "apply_settings", "restore_all", "restore_other_runs", "restore_run"]

log = logging.getLogger(__name__)


class WantedSetting(msgspec.Struct, frozen=True):
    setting: Setting
    value: str


WantedSettings = Mapping[str, WantedSetting]  # by the setting's key


def apply_settings(
    requests: Sequence[SettingRequest],
    run: str,
    open_targets: Mapping[int, OpenTarget],
    policy: Policy,
    journal: Journal,
) -> list[SettingRecord]:
    """Apply settings to the host and to every device that the run uses or has changed. Raises SettingFailed."""
    records: list[SettingRecord] = []
    try:
        wanted = _by_subject(requests, open_targets, policy)
        restore_other_runs(run, journal)
        touched = {baseline.device for baseline in journal.baselines(run)}
        subjects = sorted(touched | set(wanted), key=in_order)
        for subject in subjects:
            _apply_to_subject(SettingWriter(run, subject, journal), wanted.get(subject, {}), records)
        for subject in subjects:
            for request in wanted.get(subject, {}).values():
                refuse_undone(subject, request.setting, request.value)
    except SettingError as error:
        raise SettingFailed(error.code, error.message, tuple(records)) from error
    return records


def changed_meanwhile(applied: Iterable[SettingRecord]) -> list[SettingRecord]:
    """Read applied settings again after the measurement; a record of each that something else has changed."""
    latest = {(each.name, each.device): each for each in applied if each.name in REGISTRY}
    return [changed for each in latest.values() if (changed := _changed(each)) is not None]


def _changed(applied: SettingRecord) -> SettingRecord | None:
    """None also if it cannot be read: the device may be gone, which fails the trial in other words."""
    setting = REGISTRY[applied.name]
    try:
        now = setting.read(applied.device)
        if setting.verify(applied.device, applied.asked, now):
            return None
    except SettingError as error:
        log.warning("%s of %s cannot be read again: %s", applied.name, named(applied.device), error)
        return None
    again = record(applied.device, setting, applied.observed, applied.asked, now)
    return msgspec.structs.replace(again, meanwhile=True)


def restore_other_runs(run: str, journal: Journal) -> None:
    for restored in restore_others(run, journal):
        words = f"restored to {restored.observed}" if restored.restored else f"not restored: {restored.note}"
        log.info("Left changed by another run: %s of %s %s", restored.name, named(restored.device), words)


# ---- which settings are requested, and whether they are allowed


def _by_subject(
    requests: Iterable[SettingRequest], open_targets: Mapping[int, OpenTarget], policy: Policy
) -> dict[str, dict[str, WantedSetting]]:
    wanted: dict[str, dict[str, WantedSetting]] = {}
    for request in requests:
        setting, open_target = known(request, open_targets)
        refuse_unallowed(setting, open_target, policy)
        for subject in subjects_of(setting, open_target):
            _want(wanted.setdefault(subject, {}), subject, WantedSetting(setting, request.value))
    return wanted


def _want(known: dict[str, WantedSetting], subject: str, request: WantedSetting) -> None:
    other = known.setdefault(request.setting.key, request)
    if other != request:
        raise SettingError(
            "setting_conflict",
            f"{named(subject)} cannot have {other.setting.name}={other.value} and "
            f"{request.setting.name}={request.value} at the same time. Choose one of them.",
        )


def known(request: SettingRequest, open_targets: Mapping[int, OpenTarget]) -> tuple[Setting, OpenTarget]:
    if request.name not in REGISTRY:
        known = ", ".join(REGISTRY)
        raise SettingError(
            "setting_unknown", f"{request.name!r} is not a setting of this worker. Known settings: {known}."
        )
    open_target = open_targets.get(request.stream)
    if open_target is None:
        raise SettingError(
            "setting_refused",
            f"{request.name} is requested for stream {request.stream}, which the trial does not have.",
        )
    return REGISTRY[request.name], open_target


# ---- one subject


def _apply_to_subject(writer: SettingWriter, wanted: WantedSettings, records: list[SettingRecord]) -> None:
    baselines = writer.baselines()
    # A setting whose original value is wanted is not changed: it is restored, with all values that its change affected.
    changed = {
        key
        for key, request in wanted.items()
        if key not in baselines or request.setting.shown(baselines[key].before) != request.value
    }
    if _must_start_afresh(baselines, wanted):
        _restore(writer, tuple(baselines), records)
    else:
        _restore(writer, tuple(key for key in baselines if key not in changed), records, keep_effects=changed)
    for key in sorted(wanted, key=rank):
        apply(writer, wanted[key].setting, wanted[key].value, records)


def _must_start_afresh(baselines: Mapping[str, Baseline], wanted: WantedSettings) -> bool:
    """True if a side effect hits a setting of an earlier trial: its value now is not the kernel's default.

    Restoring the baseline first makes the kernel choose its default again.
    """
    disturbed = {key for request in wanted if request in baselines for key in BY_KEY[request].disturbs}
    return any(baselines[key].requested and key not in wanted for key in disturbed if key in baselines)


def _restore(
    writer: SettingWriter, keys: Iterable[str], records: list[SettingRecord], *, keep_effects: Iterable[str] = ()
) -> None:
    """Restore the baseline, except for side effects of settings that stay changed."""
    effects = {key for request in keep_effects for key in BY_KEY[request].disturbs}
    for key in keys:
        baseline = writer.baselines().get(key)
        if baseline is None or key not in BY_KEY or (key in effects and not baseline.requested):
            continue
        setting = BY_KEY[key]
        if not setting.vanished(writer.subject):
            _restore_one(writer, setting, baseline, records)
        writer.drop(baseline)


def _restore_one(writer: SettingWriter, setting: Setting, baseline: Baseline, records: list[SettingRecord]) -> None:
    captured = setting.capture(writer.subject)
    if not needs_restoring(setting, baseline, captured):
        return
    observed = writer.restore(setting, baseline.before)
    before, asked, now = (setting.shown(state) for state in (captured, baseline.before, observed))
    records.append(record(writer.subject, setting, before, asked, now))
    _refuse_clamped(writer, setting, asked, now, same=setting.same(observed, baseline.before))


def apply(writer: SettingWriter, setting: Setting, value: str, records: list[SettingRecord]) -> None:
    """Write one setting and read it back. Raises SettingError if it is missing or has another value."""
    if not setting.discover(writer.subject):
        raise SettingError("setting_refused", setting.missing(writer.subject))
    before = setting.read(writer.subject)
    observed = before if before == value else writer.write(setting, value)
    records.append(record(writer.subject, setting, before, value, observed))
    _refuse_clamped(writer, setting, value, observed, same=setting.verify(writer.subject, value, observed))


def refuse_undone(subject: str, setting: Setting, value: str) -> None:
    """Check a setting again after all others have been applied."""
    now = setting.read(subject)
    if not setting.verify(subject, value, now):
        raise SettingError(
            "setting_conflict",
            f"{setting.name} of {named(subject)} was set to {value} and is {now} after the other "
            "settings were written: one of them, or another program on this host, changes it.",
        )


def _refuse_clamped(writer: SettingWriter, setting: Setting, asked: str, observed: str, *, same: bool) -> None:
    if not same:
        raise SettingError(
            "setting_clamped",
            f"{setting.name} of {named(writer.subject)} was set to {asked}; {setting.taken_by} accepted it and uses "
            f"{observed} instead.{setting.because(writer.subject)}",
        )


def record(subject: str, setting: Setting, before: str, asked: str, observed: str) -> SettingRecord:
    return SettingRecord(
        at=time.time(),
        name=setting.name,
        device=subject,
        before=before[:MAX_TEXT],
        asked=asked[:MAX_TEXT],
        observed=observed[:MAX_TEXT],
    )
