"""E-mails through a real SMTP server on loopback."""

import socket

import pytest
from django.conf import settings as configured
from django.utils import timezone
from pytest_django import Settings

from webapp.notices.delivery import send_due
from webapp.notices.models import Notice
from webapp.notices.tests.receivers import Mailbox
from webapp.tests.factories.notices import a_notice, a_subscription, an_event

pytestmark = pytest.mark.django_db


def sent(notice: Notice) -> Notice:
    send_due(timezone.now())
    notice.refresh_from_db()
    return notice


def test_it_sends_plain_text_with_the_link_and_how_to_stop(mailbox: Mailbox) -> None:
    notice = sent(a_notice())
    assert (notice.state, notice.tries) == ("sent", 1)
    (message,) = mailbox.messages
    assert mailbox.recipients == [[notice.subscription.user.email]]
    assert message["Subject"] == "Run 17 of A plan is done"
    assert message["From"] == "Sweetspot <lab@example.com>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content_type() == "text/plain"
    lines = message.get_content().splitlines()
    assert lines[0] == "Run 17 of the plan A plan is done."
    assert f"{configured.PUBLIC_URL}/runs/17/" in lines
    assert lines[-1] == f"{configured.PUBLIC_URL}/notices/"
    assert "To stop them, pause or delete the subscription:" in lines[-2]


def test_it_keeps_the_message_id_on_a_retry(mailbox: Mailbox) -> None:
    mailbox.refusals = ["451 Try again later"]
    notice = sent(a_notice())
    assert (notice.state, notice.last_error) == ("pending", "The mail server answered 451 Try again later")
    send_due(notice.next_try_at)
    (message,) = mailbox.messages
    assert message["Message-ID"] == f"<{notice.id}@example.com>"


def test_it_gives_up_soon_on_an_address_that_is_refused_for_good(mailbox: Mailbox) -> None:
    mailbox.refusals = ["550 No such user"] * 3
    notice = a_notice()
    for _ in range(3):
        notice.refresh_from_db()
        send_due(notice.next_try_at)
    notice.refresh_from_db()
    assert (notice.state, notice.tries) == ("failed", 3)
    assert notice.last_error == "The mail server answered 550 No such user"
    assert mailbox.messages == []


def test_one_refused_address_does_not_keep_the_others(mailbox: Mailbox) -> None:
    first, second = a_subscription(), a_subscription()
    an_event()
    mailbox.refusals = ["550 No such user"]
    send_due(timezone.now())
    assert sorted(Notice.objects.values_list("state", flat=True)) == ["pending", "sent"]
    assert {first.user.email, second.user.email} >= {mailbox.recipients[0][0]}


def test_no_event_writes_headers_of_its_own(mailbox: Mailbox) -> None:
    a_subscription()
    an_event(subject="Run 1\r\nBcc: thief@example.com\r\n\r\nHello \x00 there")
    send_due(timezone.now())
    (message,) = mailbox.messages
    assert message["Bcc"] is None
    assert message["Subject"] == "Run 1 Bcc: thief@example.com Hello there"
    assert len(mailbox.recipients[0]) == 1


def test_it_sends_letters_of_every_script(mailbox: Mailbox) -> None:
    a_subscription()
    an_event(subject="Lauf 1 – größer", text="größer, больше, 更大")
    send_due(timezone.now())
    assert mailbox.messages[0]["Subject"] == "Lauf 1 – größer"
    assert mailbox.messages[0].get_content().startswith("größer, больше, 更大")


def test_it_waits_for_an_address(mailbox: Mailbox) -> None:
    notice = a_notice()
    user = notice.subscription.user
    user.email = ""
    user.save()
    assert sent(notice).last_error == "You have no e-mail address. Set it on the page Account."
    assert notice.state == "pending"


def test_it_says_that_e_mail_is_not_set_up(settings: Settings) -> None:
    settings.EMAIL_HOST = ""
    notice = sent(a_notice())
    assert notice.state == "pending"
    assert notice.last_error.startswith("E-mail is not set up on this server.")


def test_it_says_that_the_mail_server_is_gone(mailbox: Mailbox, settings: Settings) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        settings.EMAIL_PORT = closed.getsockname()[1]
        notice = sent(a_notice())
    assert (notice.state, notice.tries) == ("pending", 1)
    assert notice.last_error.startswith("No connection to the mail server:")


def test_it_does_not_wait_for_a_silent_mail_server(mailbox: Mailbox, settings: Settings) -> None:
    assert configured.EMAIL_TIMEOUT == 10
    settings.EMAIL_TIMEOUT = 0.3
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        settings.EMAIL_PORT = silent.getsockname()[1]
        notice = sent(a_notice())
    assert notice.last_error.startswith("No connection to the mail server:")
    assert notice.last_error.endswith("timed out.")
