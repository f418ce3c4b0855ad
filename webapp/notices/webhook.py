"""Sends a notice to a webhook: one POST, no redirects, no proxy, certificates checked.

Limits: 5 s for the name lookup, 10 s to connect (to all addresses together), 10 s for the answer.
"""

import json
import socket
import ssl
import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from webapp.core.errors import Refusal
from webapp.notices.addresses import WebhookUrl, read_url, resolve
from webapp.notices.failure import Failure
from webapp.notices.models import Notice
from webapp.notices.signing import signature, unsealed

LIMIT_S = 10.0
_TRY_LATER = (408, 425, 429)


def send(notice: Notice) -> None:
    """Raises Failure."""
    subscription = notice.subscription
    body = json.dumps(notice.payload, separators=(",", ":")).encode()
    timestamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Sweetspot",
        "Sweetspot-Event": notice.event,
        "Sweetspot-Delivery": str(notice.id),
        "Sweetspot-Timestamp": timestamp,
        "Sweetspot-Signature": signature(unsealed(subscription.secret), timestamp, body),
    }
    _judge(_post(subscription.url, headers, body, owner=subscription.user_id))


def _post(url: str, headers: dict[str, str], body: bytes, *, owner: Hashable) -> int:
    """Post the notice; return the HTTP status. Raises Failure."""
    try:
        receiver = read_url(url)
        addresses = resolve(receiver, owner=owner)
    except Refusal as refusal:
        refused = refusal.code != "webhook_unresolved"
        raise Failure(refusal.message, refused=refused, unreachable=True) from refusal
    with _connected(receiver, addresses) as sock, _time_limit(sock, receiver):
        connection = _connection(receiver, sock)
        try:
            connection.request(
                "POST", receiver.target, body=body, headers=headers, preload_content=False, decode_content=False
            )
            return connection.getresponse().status  # the body is not needed
        finally:
            connection.close()


@contextmanager
def _connected(receiver: WebhookUrl, addresses: Sequence[str]) -> Iterator[socket.socket]:
    """A connection to the first address that accepts one. Raises Failure."""
    problem: OSError | None = None
    for address in addresses:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as sock:
            sock.settimeout(LIMIT_S / len(addresses))
            try:
                sock.connect((address, receiver.port))
            except OSError as error:
                problem = error
                continue
            sock.settimeout(LIMIT_S)
            yield sock
            return
    raise Failure(f"No connection to {receiver.name}: {_words(problem)}.", unreachable=True) from problem


@contextmanager
def _time_limit(sock: socket.socket, receiver: WebhookUrl) -> Iterator[None]:
    """Cut the connection after the time limit, even if the receiver is still sending. Raises Failure."""
    passed = threading.Event()
    with sock.dup() as handle:  # TLS takes over the socket itself

        def cut() -> None:
            passed.set()
            with suppress(OSError):  # the receiver was faster
                handle.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(LIMIT_S, cut)
        timer.start()
        try:
            yield
            if passed.is_set():  # a connection that breaks within the headers looks like their end
                raise TimeoutError
        except (OSError, HTTPError, ValueError) as error:
            if passed.is_set() or isinstance(error, TimeoutError):
                words = f"{receiver.name} did not answer within {LIMIT_S:g} s."
            else:
                words = f"The connection to {receiver.name} broke: {_words(error)}."
            raise Failure(words, unreachable=True) from error
        finally:
            timer.cancel()
            timer.join()


def _connection(receiver: WebhookUrl, sock: socket.socket) -> HTTPConnection:
    """Uses the host name for the Host header and the certificate, and connects to the checked address."""
    if receiver.scheme == "http":
        plain = HTTPConnection(receiver.host, receiver.port)
        plain._new_conn = lambda: sock  # type: ignore[method-assign]
        return plain
    encrypted = HTTPSConnection(receiver.host, receiver.port, ssl_context=ssl.create_default_context())
    encrypted._new_conn = lambda: sock  # type: ignore[method-assign]
    return encrypted


def _judge(status: int) -> None:
    """Raises Failure for every status that is not 2xx."""
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        words = f"The receiver answered {status}, a redirect. Redirects are not followed: enter the final address."
        raise Failure(words, refused=True)
    refused = 400 <= status < 500 and status not in _TRY_LATER
    raise Failure(f"The receiver answered {status}.", refused=refused)


def _words(error: BaseException | None) -> str:
    """The innermost reason: urllib3 wraps errors in errors."""
    while error is not None and (inner := error.__cause__ or error.__context__):
        error = inner
    reason = getattr(error, "verify_message", "") or getattr(error, "strerror", "") or str(error)
    return reason or type(error).__name__
