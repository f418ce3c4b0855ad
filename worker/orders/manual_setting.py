"""Read, change or restore one setting by a separate order, outside any run."""

from worker import guard, policy
from worker.contract.items import Finished, Outcome
from worker.contract.orders import SettingOperation, SettingOrder
from worker.journal import JournalError
from worker.orders.context import OrderContext
from worker.orders.outcomes import failed, finished
from worker.orders.restore import not_restored
from worker.settings import SETTING_NAMES, by_hand
from worker.settings.base import SettingFailed


def carry_out(order: SettingOrder, context: OrderContext) -> Finished:
    try:
        return _carry_out(order, context)
    except SettingFailed as error:
        for record in error.records:
            context.emit(record)
        return failed(error)
    except (guard.GuardRefused, policy.PolicyError, JournalError) as error:
        return failed(error)


def _carry_out(order: SettingOrder, context: OrderContext) -> Finished:
    allowed = policy.load(context.host.policy, SETTING_NAMES)
    open_target, journal = guard.listed(order.target, allowed), context.host.journal
    if order.operation is SettingOperation.READ:
        context.emit(by_hand.read(order.name, open_target))
        return finished(Outcome.DONE)
    if order.operation is SettingOperation.SET:
        journal.require_reserve()
        for record in by_hand.change(order.name, order.value, open_target, allowed, journal):
            context.emit(record)
        return finished(Outcome.DONE)
    restored = by_hand.restore(order.name, open_target, journal)
    for item in restored:
        context.emit(item)
    if left := not_restored(restored):
        return finished(Outcome.FAILED, "settings_not_restored", f"Not restored: {left}")
    return finished(Outcome.DONE)
