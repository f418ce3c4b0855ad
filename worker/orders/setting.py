"""One setting read, changed or put back by an order of its own."""

from collections.abc import Callable

from worker import guard, policy
from worker.contract.items import Finished, Item, Outcome
from worker.contract.orders import SettingDeed, SettingOrder
from worker.orders.outcomes import finished
from worker.orders.trial import Bench
from worker.settings import SETTING_NAMES, by_hand
from worker.settings.base import SettingFailed


def carry_out(order: SettingOrder, bench: Bench, emit: Callable[[Item], None]) -> Finished:
    """Never raises for what can be expected to go wrong."""
    try:
        return _carry_out(order, bench, emit)
    except SettingFailed as error:
        for record in error.records:
            emit(record)
        return finished(Outcome.FAILED, error.code, str(error))
    except (guard.GuardRefused, policy.PolicyError) as error:
        return finished(Outcome.FAILED, error.code, str(error))


def _carry_out(order: SettingOrder, bench: Bench, emit: Callable[[Item], None]) -> Finished:
    allowed = policy.load(bench.policy, SETTING_NAMES)
    place = guard.listed(order.target, allowed)
    if order.deed is SettingDeed.READ:
        emit(by_hand.read(order.name, place))
        return finished(Outcome.DONE)
    if order.deed is SettingDeed.SET:
        for record in by_hand.change(order.name, order.value, place, allowed, bench.journal):
            emit(record)
        return finished(Outcome.DONE)
    told = by_hand.put_back(order.name, place, bench.journal)
    for item in told:
        emit(item)
    left = "; ".join(f"{item.name} of {item.device or 'the host'}: {item.note}" for item in told if not item.restored)
    if left:
        return finished(Outcome.FAILED, "settings_not_restored", f"Not put back: {left}")
    return finished(Outcome.DONE)
