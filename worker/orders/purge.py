"""Purge one drive by a separate order."""

import time

from worker import guard, policy
from worker.contract.items import Finished, Outcome, Phase, PhaseName
from worker.contract.orders import PurgeOrder
from worker.drives.purge import PurgeFailed
from worker.drives.purge.target import purge_target
from worker.journal import JournalError
from worker.orders.context import OrderContext
from worker.orders.outcomes import failed, finished
from worker.settings import SETTING_NAMES


def carry_out(order: PurgeOrder, context: OrderContext) -> Finished:
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
    except (guard.GuardRefused, policy.PolicyError, JournalError, PurgeFailed) as error:
        if reason := control.reason:
            return finished(reason.outcome, reason.code, f"{reason.message} {error}")
        return failed(error)
    return finished(Outcome.DONE)
