"""The command of an operator, and a host with results."""

import pytest
from django.utils import timezone

from webapp.api.tests.command.shell import Shell
from webapp.api.tests.conftest import CAPABILITIES
from webapp.core.models import Role
from webapp.core.services import create_api_token
from webapp.hosts.models import Host
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.results import Lab


@pytest.fixture
def shell(db: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Of an operator. It never sleeps."""
    monkeypatch.setattr("worker.client.server.sleep", lambda _: None)
    monkeypatch.setattr("worker.client.runs.sleep", lambda _: None)
    monkeypatch.setattr("webapp.api.runs.sleep", lambda _: None)
    return Shell(capsys, create_api_token(user=a_user("olga", Role.OPERATOR), name="laptop"))


@pytest.fixture
def host(db: None) -> Host:
    host = a_host("storage1")
    host.capabilities, host.last_seen_at = CAPABILITIES, timezone.now()
    host.save()
    a_target(host, "scratch")
    return host


@pytest.fixture
def lab(host: Host) -> Lab:
    """Run 1: io_uring is faster than psync."""
    lab = Lab(host.targets.get())
    lab.measure(99.0, 100.0, 101.0, ioengine="io_uring")
    lab.measure(61.0, 62.0, 63.0, ioengine="psync")
    return lab
