"""A client has a burst, and then so much each second."""

from webapp.core import throttle
from webapp.core.throttle import Rate


def test_it_allows_a_burst_and_then_the_rate() -> None:
    clock = [0.0]
    rate = Rate(burst=10, per_s=2, clock=lambda: clock[0])
    assert [rate.take("a", 4) for _ in range(4)] == [True, True, False, False]
    assert rate.take("a", 2)
    assert rate.take("b", 10)
    clock[0] = 1.5
    assert [rate.take("a", 3), rate.take("a", 1)] == [True, False]
    clock[0] = 1000.0
    assert [rate.take("a", 11), rate.take("a", 10)] == [False, True]


def test_it_forgets_clients_that_may_have_their_burst_again() -> None:
    clock = [0.0]
    rate = Rate(burst=10, per_s=1, clock=lambda: clock[0])
    for number in range(throttle.MAX_CLIENTS - 1):
        rate.take(number)
    clock[0] = 5.0
    assert rate.take("a", 10)
    assert rate.take("b", 10)
    assert len(rate._left) == 2
    assert not rate.take("a", 10)
