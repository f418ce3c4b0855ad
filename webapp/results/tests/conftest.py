"""Fixtures of these tests."""

import pytest

from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.runs import a_run


@pytest.fixture
def attempt() -> Attempt:
    """The first attempt of a run of three trials on one host."""
    run = a_run(a_target(), trials=3)
    dispatched = dispatch_host(run.targets.get().host_id)
    assert dispatched
    return dispatched
