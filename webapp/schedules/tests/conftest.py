"""A clock that starts at noon, and something to run on."""

from collections.abc import Iterator

import pytest

from webapp.hosts.models import Target
from webapp.schedules.tests.clock import Clock, clock
from webapp.schedules.tests.moments import NOON
from webapp.tests.factories.hosts import a_drive, a_target


@pytest.fixture
def at_noon() -> Iterator[Clock]:
    with clock(NOON) as made:
        yield made


@pytest.fixture
def target(at_noon: Clock) -> Target:
    return a_target()


@pytest.fixture
def drive(at_noon: Clock) -> Target:
    return a_drive()
