"""Sends a notice to a webhook: one POST, no redirects, no proxy, certificates checked.

Limits: 5 s for the name lookup, 10 s to connect (to all addresses together), 10 s for the answer.
"""

import hashlib
import hmac
import ipaddress
import json
import re
import secrets
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from cryptography.fernet import InvalidToken
from django.conf import settings
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from webapp.core.errors import Refusal
from webapp.core.tokens import fernet
from webapp.notices.models import Failure, Notice

# Allowed addresses of webhooks: outside the server's own network, or in networks that the administrator allows.
#
# A name is resolved once. The server checks the addresses and connects to one of them, so a name that resolves to
# another address a moment later (DNS rebinding) has no effect.

RESOLVE_LIMIT_S = 5.0
MAX_URL = 1000
_MAX_ADDRESSES = 4
_PORTS = {"http": 80, "https": 443}
_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_UNICAST = ipaddress.ip_network("2000::/3")  # all of IPv6 that is routed between networks
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# In addition to the local ranges of Python's ipaddress: cloud metadata services, and ranges that Python 3.11 lacks.
_INSIDE_TOO = [ipaddress.ip_network(text) for text in ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24")]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# getaddrinfo has no time limit of its own, so each look-up has a thread, which may go on after the limit. One person's
# names must not use up the threads of others.
MAX_LOOKUPS, MAX_LOOKUPS_OF_OWNER = 64, 4
_lock = threading.Lock()
_lookups: Counter[Hashable] = Counter()  # by owner, those that have not ended
_Entries = list[tuple[Any, ...]]


@dataclass(frozen=True)
class WebhookUrl:
    """A webhook's address in parts."""

    scheme: str
    host: str
    port: int
    target: str  # path and query

    @property
    def name(self) -> str:
        """Host and port, for sentences and as the key of a receiver."""
        return f"{self.host}:{self.port}"


def read_url(url: str) -> WebhookUrl:
    """Raises Refusal webhook_url_refused."""
    if len(url) > MAX_URL or not _PRINTABLE.fullmatch(url):
        words = f"The address must have 1 to {MAX_URL} ASCII characters without spaces. Encode others as %20."
        raise Refusal("webhook_url_refused", words)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise Refusal("webhook_url_refused", f"The address cannot be read: {error}.") from error
    if parts.scheme not in _PORTS or not host or port == 0:
        raise Refusal("webhook_url_refused", "The address must look like https://hooks.example.com/path.")
    if "@" in parts.netloc:
        raise Refusal("webhook_url_refused", "The address must not contain a user name or password. Remove them.")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookUrl(parts.scheme, host, port or _PORTS[parts.scheme], target)


def resolve(url: WebhookUrl, *, owner: Hashable) -> list[str]:
    """The addresses to connect to, all of them checked. `owner` is the person whose webhook it is. Raises Refusal
    webhook_unresolved or webhook_inside."""
    addresses = _resolved(url, owner)
    if any(_is_inside(address) for address in addresses):
        words = (
            f"{url.host} is inside the server's own network. "
            "The administrator can allow it with SWEETSPOT_WEBHOOK_NETWORKS."
        )
        raise Refusal("webhook_inside", words)
    return addresses


def _resolved(url: WebhookUrl, owner: Hashable) -> list[str]:
    looked_up = _look_up(url, owner)
    try:
        entries = looked_up.result(timeout=RESOLVE_LIMIT_S)
    except TooLate as error:
        words = f"The name {url.host} could not be resolved within {RESOLVE_LIMIT_S:g} s. Try again later."
        raise Refusal("webhook_unresolved", words) from error
    except (OSError, ValueError) as error:  # UnicodeError, raised for an impossible name, is a ValueError
        words = f"The name {url.host} cannot be resolved. Check its spelling."
        raise Refusal("webhook_unresolved", words) from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))[:_MAX_ADDRESSES]


def _look_up(url: WebhookUrl, owner: Hashable) -> "Future[_Entries]":
    """Raises Refusal webhook_unresolved while too many look-ups have not ended."""
    with _lock:
        if _lookups[owner] >= MAX_LOOKUPS_OF_OWNER or _lookups.total() >= MAX_LOOKUPS:
            words = f"The name {url.host} could not be resolved: earlier look-ups have not ended. Try again later."
            raise Refusal("webhook_unresolved", words)
        _lookups[owner] += 1
    looked_up: Future[_Entries] = Future()

    def run() -> None:
        try:
            looked_up.set_result(socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM))
        except Exception as error:  # noqa: BLE001  the caller raises it
            looked_up.set_exception(error)
        finally:
            with _lock:
                _lookups[owner] -= 1
                if not _lookups[owner]:
                    del _lookups[owner]

    threading.Thread(target=run, name=f"resolve {url.host}"[:60], daemon=True).start()
    return looked_up


def _is_inside(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    equivalent = list(_equivalent_addresses(address))
    if any(form in network for form in equivalent for network in settings.WEBHOOK_NETWORKS):
        return False
    return any(_is_local(form) for form in equivalent)


def _equivalent_addresses(address: Address) -> Iterator[Address]:
    """The address, and the IPv4 address embedded in an IPv6 address."""
    if not isinstance(address, ipaddress.IPv6Address):
        yield address
    elif address.ipv4_mapped:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    else:
        yield address
        if address.sixtofour:
            yield address.sixtofour
        if address.teredo:
            yield from address.teredo


def _is_local(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST:
        return True
    special = address.is_multicast or address.is_reserved or any(address in network for network in _INSIDE_TOO)
    return special or not address.is_global


# Secrets of webhooks, and the signature that a receiver checks with them.

_PURPOSE = b"sweetspot webhook secret"


def new_secret() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def sealed(secret: str) -> bytes:
    """The encrypted secret for the database."""
    return fernet(settings.SECRET_KEY, purpose=_PURPOSE).encrypt(secret.encode())


def unsealed(encrypted: bytes | memoryview) -> str:
    """The decrypted secret. Raises Failure if the server's secret key has changed."""
    try:
        return fernet(settings.SECRET_KEY, purpose=_PURPOSE).decrypt(bytes(encrypted)).decode()
    except InvalidToken as error:
        words = "The server's secret key has changed, so the webhook's secret cannot be read. Renew the secret."
        raise Failure(words, refused=True) from error


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """`v1=` and HMAC-SHA256 of timestamp, a dot and the body, in hex."""
    signed = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"v1={signed.hexdigest()}"


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
    trust = ssl.create_default_context()
    trust.hostname_checks_common_name = False  # as browsers: only the alternative names are names of a server
    encrypted = HTTPSConnection(receiver.host, receiver.port, ssl_context=trust)
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
