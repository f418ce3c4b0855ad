"""The one task: take an order. It verifies and writes down, no more; the trial thread does the work."""

import logging
from collections.abc import Callable

from celery import Celery

from worker.contract.orders import ORDER_TASK

log = logging.getLogger(__name__)


def register_order_task(app: Celery, take_order: Callable[[str], None]) -> None:
    """Give the app its task. `take_order` may be called with the same order any number of times."""

    @app.task(name=ORDER_TASK)
    def order(envelope: str) -> None:
        take_order(envelope)
