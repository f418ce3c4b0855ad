"""Sends notices by e-mail through the server that SWEETSPOT_SMTP_URL names."""

import smtplib
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parseaddr

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend

from webapp.notices.models import Failure, Notice

NOT_SET_UP = "E-mail is not set up on this server. The administrator can set SWEETSPOT_SMTP_URL."
NO_ADDRESS = "You have no e-mail address. Set it on the page Account."


def is_set_up() -> bool:
    return bool(settings.EMAIL_HOST)


@contextmanager
def connected() -> Iterator[BaseEmailBackend]:
    """A connection for several e-mails. Raises Failure."""
    if not is_set_up():
        raise Failure(NOT_SET_UP, unreachable=True)
    connection: BaseEmailBackend = get_connection()
    try:
        connection.open()
    except smtplib.SMTPAuthenticationError as error:
        words = "The mail server refused this server's log-in. Ask the administrator to check SWEETSPOT_SMTP_URL."
        raise Failure(words, unreachable=True) from error
    except OSError as error:  # an SMTPException is one
        raise Failure(f"No connection to the mail server: {error.strerror or error}.", unreachable=True) from error
    try:
        yield connection
    finally:
        connection.close()


def send(notice: Notice, connection: BaseEmailBackend) -> None:
    """Raises Failure."""
    address = notice.subscription.user.email
    if not address:
        raise Failure(NO_ADDRESS)
    message = EmailMessage(
        subject=notice.subject,
        body=_body(notice),
        to=[address],
        headers={"Message-ID": _message_id(notice), "Auto-Submitted": "auto-generated"},
        connection=connection,
    )
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as error:
        code, reply = next(iter(error.recipients.values()))
        raise _answered(code, reply) from error
    except smtplib.SMTPResponseException as error:
        raise _answered(error.smtp_code, error.smtp_error) from error
    except (OSError, ValueError) as error:
        raise Failure(f"The connection to the mail server was lost: {error}.", unreachable=True) from error


def _answered(code: int, reply: bytes | str) -> Failure:
    words = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
    return Failure(f"The mail server answered {code} {' '.join(words.split())}", refused=code >= 500)


def _body(notice: Notice) -> str:
    return (
        f"{notice.text}\n\n{notice.payload['url']}\n\n-- \n"
        f"You subscribed to these e-mails in Sweetspot. To stop them, pause or delete the subscription:\n"
        f"{settings.PUBLIC_URL}/notices/\n"
    )


def _message_id(notice: Notice) -> str:
    """The message id. It is the same on each retry, so mail programs recognise duplicates."""
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2]
    return f"<{notice.id}@{domain}>"
