import msgspec
import pytest

from worker.contract.orders import InventoryOrder
from worker.orders import executor

NOW = 1_700_000_000.0
ORDER = InventoryOrder(host="h", attempt="a", issued_at=NOW - 10, expires_at=NOW + 290)


def code(now: float = NOW, newest: float = 0.0, **changes: float) -> str:
    found = executor.problem(msgspec.structs.replace(ORDER, **changes), now=now, newest=newest)
    return found[0] if found else ""


def test_an_order_in_time_starts() -> None:
    assert code() == ""
    assert code(newest=NOW - 20) == ""


@pytest.mark.parametrize("expires_at", [NOW - 1, NOW - 10**9])
def test_an_expired_order_does_not_start(expires_at: float) -> None:
    assert code(expires_at=expires_at) == "order_expired"


def test_an_order_of_the_future_does_not_start_unless_a_clock_was_set_a_little() -> None:
    assert code(issued_at=NOW + 30) == ""
    assert code(issued_at=NOW + 3600, expires_at=NOW + 3900) == "order_too_early"


def test_an_order_does_not_overtake_a_newer_one() -> None:
    assert code(newest=NOW - 5) == "order_superseded"


def test_a_newer_order_of_a_clock_that_was_set_back_does_not_count() -> None:
    assert code(newest=NOW + 7200) == ""
