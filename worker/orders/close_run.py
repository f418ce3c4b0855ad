"""Close a run: restore everything that it changed on this host."""

from worker.contract.items import Finished, Outcome
from worker.contract.orders import CloseRunOrder
from worker.drives.wear import Wear
from worker.orders.context import OrderContext
from worker.orders.outcomes import finished
from worker.orders.restore import not_restored, restore
from worker.settings import session


def carry_out(order: CloseRunOrder, context: OrderContext) -> Finished:
    restored = restore(context.host, order.run)
    for item in restored:
        context.emit(item)
    session.restore_other_runs(order.run, context.host.journal)
    Wear(context.host.state, order.run, context.emit).close()
    if left := not_restored(restored):
        return finished(Outcome.FAILED, "settings_not_restored", f"Not restored: {left}")
    return finished(Outcome.DONE)
