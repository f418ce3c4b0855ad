"""Take a new inventory and send it to the server."""

from worker.contract.items import Finished, Outcome
from worker.contract.orders import InventoryOrder
from worker.link.client import Refused, Unreachable
from worker.orders.context import OrderContext
from worker.orders.outcomes import finished

TRIES = 3


def carry_out(_order: InventoryOrder, context: OrderContext) -> Finished:
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
