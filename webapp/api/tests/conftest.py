"""People with API tokens, and a host with results."""

import pytest
from django.utils import timezone

from webapp.api.tests.clients import Caller, caller
from webapp.core.models import Role
from webapp.hosts.models import Host
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.results import Lab

CAPABILITIES = {
    "engines": {"fio": {"version": "fio-3.33", "features": ["io_uring", "psync"]}}, "settings": ["scheduler"],
    "as_root": True, "isolation": "cgroup1",
}  # fmt: skip


@pytest.fixture
def viewer() -> Caller:
    return caller(Role.VIEWER)


@pytest.fixture
def operator() -> Caller:
    return caller(Role.OPERATOR)


@pytest.fixture
def arming_operator() -> Caller:
    """With a token that may arm."""
    return caller(Role.OPERATOR, may_arm=True)


@pytest.fixture
def host() -> Host:
    host = a_host("a")
    host.capabilities, host.last_seen_at = CAPABILITIES, timezone.now()
    host.save()
    return host


@pytest.fixture
def lab(host: Host) -> Lab:
    lab = Lab(a_target(host, "scratch"))
    lab.measure(99.0, 100.0, 101.0, iodepth=1)
    lab.measure(61.0, 62.0, 63.0, iodepth=1, ioengine="psync")
    return lab
