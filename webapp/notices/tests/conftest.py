from collections.abc import Iterator

import pytest
from pytest_django import Settings

from webapp.notices.tests.receivers import Mailbox, Receiver, mail_server, receiver
from webapp.settings.environment import networks


@pytest.fixture
def loopback_allowed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEETSPOT_WEBHOOK_NETWORKS", "127.0.0.0/8")
    settings.WEBHOOK_NETWORKS = networks("SWEETSPOT_WEBHOOK_NETWORKS")


@pytest.fixture
def hook(loopback_allowed: None) -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture
def mailbox(settings: Settings) -> Iterator[Mailbox]:
    with mail_server() as found:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
        settings.DEFAULT_FROM_EMAIL = "Sweetspot <lab@example.com>"
        yield found
