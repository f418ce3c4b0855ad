"""The registry of order handlers, by kind of order."""

import time
from collections.abc import Mapping

from worker import guard, policy
from worker.contract.base import Failed
from worker.contract.items import Finished, Outcome, Phase, PhaseName
from worker.contract.orders import AnyOrder, CloseRunOrder, InventoryOrder, PurgeOrder, SettingOrder, TrialOrder
from worker.drives.purge import purge_target
from worker.drives.wear import Wear
from worker.link.client import Refused, Unreachable
from worker.orders import manual_setting, trial
from worker.orders.context import Handler, OrderContext, failed, finished
from worker.orders.restore import not_restored, restore
from worker.settings import SETTING_NAMES, session

# Purge one drive by a separate order.


def purge_drive(order: PurgeOrder, context: OrderContext) -> Finished:
    host, control = context.host, context.control
    try:
        armed = guard.serials_in_time(order.arming, now=context.server_now(), destroys=True)
        host.journal.require_reserve()
        allowed = policy.load(host.policy, SETTING_NAMES)
        context.emit(Phase(at=time.time(), name=PhaseName.GUARD))
        purge_target(
            order.target, order.method, allowed, armed,
            drives=host.drives, journal=host.journal, state=host.state, emit=context.emit, stopped=control.stopped,
        )  # fmt: skip
    except Failed as error:
        if reason := control.reason:
            return finished(reason.outcome, reason.code, f"{reason.message} {error}")
        return failed(error)
    return finished(Outcome.DONE)


# Take a new inventory and send it to the server.

TRIES = 3


def send_inventory(_order: InventoryOrder, context: OrderContext) -> Finished:
    problem = ""
    for pause_s in range(TRIES):
        if context.control.stopped.wait(pause_s):
            break
        try:
            context.register()
            return finished(Outcome.DONE)
        except (Unreachable, Refused) as error:
            problem = str(error)
    return finished(Outcome.FAILED, "hello_failed", f"The inventory could not be sent: {problem}")


# Close a run: restore everything that it changed on this host.


def close_run(order: CloseRunOrder, context: OrderContext) -> Finished:
    restored = restore(context.host, order.run)
    for item in restored:
        context.emit(item)
    session.restore_other_runs(order.run, context.host.journal)
    Wear(context.host.state, order.run, context.emit).close()
    if left := not_restored(restored):
        return finished(Outcome.FAILED, "settings_not_restored", f"Not restored: {left}")
    return finished(Outcome.DONE)


HANDLERS: Mapping[type[AnyOrder], Handler] = {
    TrialOrder: trial.carry_out,
    CloseRunOrder: close_run,
    PurgeOrder: purge_drive,
    SettingOrder: manual_setting.carry_out,
    InventoryOrder: send_inventory,
}
