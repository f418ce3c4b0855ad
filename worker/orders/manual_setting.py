"""Read, change or restore one setting by a separate order, outside any run."""

from worker import guard, policy
from worker.contract.base import Failed
from worker.contract.items import Finished, Outcome, SettingRecord, SettingRestored
from worker.contract.orders import SettingOperation, SettingOrder, SettingRequest
from worker.journal import Journal
from worker.kernel.targets import OpenTarget
from worker.orders.context import OrderContext, failed, finished
from worker.orders.restore import not_restored
from worker.policy import Policy
from worker.settings import BY_KEY, SETTING_NAMES
from worker.settings.base import SettingError, SettingFailed, named, subject_of
from worker.settings.restore import BY_HAND, obstacle, restored
from worker.settings.session import apply, known, record, refuse_unallowed, refuse_undone
from worker.settings.writer import SettingWriter

# Settings that a person changes outside any run. They stay until the person restores them.
#
# The journal keeps the original values under the run `by-hand`. The end of another run, a start of the worker and a
# silent server do not restore them. A run that starts later treats the changed value as the host's own.


def read(name: str, open_target: OpenTarget) -> SettingRecord:
    """Read the value, as `observed`. Raises SettingFailed."""
    try:
        setting, _ = known(SettingRequest(name=name, value=""), {0: open_target})
        subject = subject_of(setting, open_target.device)
        if not setting.discover(subject):
            raise SettingError("setting_refused", setting.missing(subject))
        now = setting.read(subject)
    except SettingError as error:
        raise SettingFailed(error.code, error.message, ()) from error
    return record(subject, setting, now, "", now)


def change(name: str, value: str, open_target: OpenTarget, policy: Policy, journal: Journal) -> list[SettingRecord]:
    """Write the value, read it back and keep the original one. Raises SettingFailed with the records so far."""
    records: list[SettingRecord] = []
    try:
        request, _ = known(SettingRequest(name=name, value=value), {0: open_target})
        refuse_unallowed(request, open_target, policy)
        _refuse_while_a_run_holds_settings(journal)
        writer = SettingWriter(BY_HAND, subject_of(request, open_target.device), journal)
        apply(writer, request, value, records)
        refuse_undone(writer.subject, request, value)
    except SettingError as error:
        raise SettingFailed(error.code, error.message, tuple(records)) from error
    return records


def restore(name: str, open_target: OpenTarget, journal: Journal) -> list[SettingRestored]:
    """Restore the setting and its side effects. Raises SettingFailed if it was not changed by hand."""
    try:
        setting, _ = known(SettingRequest(name=name, value=""), {0: open_target})
        _refuse_while_a_run_holds_settings(journal)
        subject = subject_of(setting, open_target.device)
    except SettingError as error:
        raise SettingFailed(error.code, error.message, ()) from error
    writer = SettingWriter(BY_HAND, subject, journal)
    baselines = writer.baselines()
    if setting.key not in baselines:
        words = f"{name} of {named(subject)} was not changed by hand, or has already been restored."
        raise SettingFailed("setting_not_changed", words, ())
    effects = (key for key in setting.disturbs if key in BY_KEY and key in baselines and not baselines[key].requested)
    return list(restored(tuple(baselines[key] for key in (setting.key, *effects)), journal))


def _refuse_while_a_run_holds_settings(journal: Journal) -> None:
    """Ignores settings that cannot be restored now, such as those of an absent drive."""
    if any(baseline.run != BY_HAND and not obstacle(baseline, journal) for baseline in journal.baselines()):
        raise SettingError(
            "setting_conflict",
            "A run has changed settings on this host and has not restored them yet. Wait for its end, or cancel it.",
        )


def carry_out(order: SettingOrder, context: OrderContext) -> Finished:
    try:
        return _carry_out(order, context)
    except SettingFailed as error:
        for record in error.records:
            context.emit(record)
        return failed(error)
    except Failed as error:
        return failed(error)


def _carry_out(order: SettingOrder, context: OrderContext) -> Finished:
    allowed = policy.load(context.host.policy, SETTING_NAMES)
    open_target, journal = guard.listed(order.target, allowed), context.host.journal
    if order.operation is SettingOperation.READ:
        context.emit(read(order.name, open_target))
        return finished(Outcome.DONE)
    if order.operation is SettingOperation.SET:
        journal.require_reserve()
        for record in change(order.name, order.value, open_target, allowed, journal):
            context.emit(record)
        return finished(Outcome.DONE)
    restored = restore(order.name, open_target, journal)
    for item in restored:
        context.emit(item)
    if left := not_restored(restored):
        return finished(Outcome.FAILED, "settings_not_restored", f"Not restored: {left}")
    return finished(Outcome.DONE)
