"""Whether an order may start now, by the server's clock."""

from worker.contract.orders import AnyOrder

AHEAD_S = 60.0  # an order may have been issued so much later than now, because the server's clock may be set


def problem(order: AnyOrder, *, now: float, newest: float) -> tuple[str, str] | None:
    """Code and message of an order that is too late, too early, or older than a started one; None if it may start.

    `newest`: when the newest started order was issued. A value after `now` is of a clock that was set back since.
    """
    if now > order.expires_at:
        return "order_expired", f"The order expired {now - order.expires_at:.0f} s before it could start."
    if order.issued_at > now + AHEAD_S:
        return "order_too_early", f"The order was issued {order.issued_at - now:.0f} s in the future."
    if order.issued_at < newest <= now:
        return "order_superseded", "The host has started an order that was issued later than this one."
    return None
