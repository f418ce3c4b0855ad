"""How many requests Django works on at a time: of one person or program, and of those that take much CPU time and
memory, such as previews, comparisons and imports.

Of the latter, each process works on RUNNING of each kind at a time. Others wait in the threads for clients
(`webapp.serving.worker`), so that they occupy no thread of Django. The next one is the oldest of the client that has
the fewest running: somebody who sends many at a time delays their own.

    request → waits for a place → Django runs → response is complete
        └ too many wait, or it has waited too long → 503
"""

import re
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any

# Python runs one thread at a time. With two, a short request need not wait for the end of a long one.
RUNNING = 2
MAX_WAITING = 24  # in each process, which has 256 threads for clients
MAX_WAITING_OF_CLIENT = 8  # more than the requests that a browser sends at a time
SESSION_COOKIE = "sessionid"
_SHARED = re.compile(r"/shared/([^/]+)")


@dataclass(frozen=True)
class Kind:
    """`paths` matches the start of a path. `webapp/tests/test_hostile_parameters.py` measures all other addresses."""

    paths: re.Pattern[str]
    wait_s: float


QUESTIONS = Kind(
    re.compile(
        r"/(explore|bench|trends|comparisons|shared)[/.]"
        r"|/(api/v1/)?(plans|schedules)/[^/]+"
        r"|/runs/\d+/$"
        r"|/api/v1/(previews|job-files|compare|bench|verdict)\b"
        r"|/api/v1/runs/\d+/(rounds|shares|verdict)$"
    ),
    wait_s=10.0,
)
# Of a folder in parts; the browser would have to begin again.
UPLOADS = Kind(re.compile(r"/(api/v1/)?imports/(\d+/files|labels|columns|values)"), wait_s=300.0)
# Each needs a count in the database, and a page or the check of a password. Anybody can send them.
LOGINS = Kind(re.compile(r"/login/$"), wait_s=10.0)
PROVIDER_LOGINS = Kind(re.compile(r"/login/oidc/"), wait_s=10.0)  # may wait for the identity provider
KINDS = (QUESTIONS, UPLOADS, LOGINS, PROVIDER_LOGINS)

# Somebody who invents sessions, tokens or links would fill all places before Django refuses them. So these places are
# for identities whose question or upload was answered before; others have as many of their own.
MAX_KNOWN = 5000
OF_THE_KNOWN = (QUESTIONS, UPLOADS)  # anybody gets an answer at the others


def kind_of(path: str) -> Kind | None:
    """None for a request that is answered quickly."""
    return next((kind for kind in KINDS if kind.paths.match(path)), None)


def client_of(environ: Mapping[str, Any]) -> str:
    """Who sends the request: see `identity_of`, otherwise an address."""
    return identity_of(environ) or str(environ.get("REMOTE_ADDR", ""))


def identity_of(environ: Mapping[str, Any]) -> str:
    """A link to a report, a token or a session; "" without one. A false one is refused quickly by Django."""
    if shared := _SHARED.match(environ["PATH_INFO"]):
        return shared[0]
    if token := environ.get("HTTP_AUTHORIZATION"):
        return str(token)
    try:
        session = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(SESSION_COOKIE)
    except CookieError:
        session = None
    return session.value if session else ""


# ---- requests of one identity

# In each process. Somebody who sends hundreds at a time, and perhaps takes no answer, would delay all others until
# Django has made all answers. Python runs one thread at a time, so more than a few running ones only delay others; a
# browser has six connections, and three processes serve them.
RUNNING_OF_IDENTITY = 4
WAITING_OF_IDENTITY = 20
IDENTITY_WAIT_S = 30.0


@dataclass
class _Share:
    running: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(RUNNING_OF_IDENTITY))
    users: int = 0  # running and waiting


class Shares:
    """What each identity may have under way in one process, besides expensive requests.

    Requests without an identity are not limited: they are answered quickly, and behind a proxy all of them have its
    address.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shares: defaultdict[str, _Share] = defaultdict(_Share)

    def enter(self, identity: str) -> bool:
        """Wait while too many are running; False if too many wait already. Call `leave` after the response."""
        if not identity:
            return True
        with self._lock:
            share = self._shares[identity]
            if share.users >= RUNNING_OF_IDENTITY + WAITING_OF_IDENTITY:
                return False
            share.users += 1
        if share.running.acquire(timeout=IDENTITY_WAIT_S):
            return True
        self._forget(identity)
        return False

    def leave(self, identity: str) -> None:
        if identity:
            self._shares[identity].running.release()
            self._forget(identity)

    def _forget(self, identity: str) -> None:
        with self._lock:
            self._shares[identity].users -= 1
            if not self._shares[identity].users:
                del self._shares[identity]


# ---- requests that take long


class KnownIdentities:
    """Those of the last MAX_KNOWN that Django has accepted, in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, None] = OrderedDict()

    def add(self, identity: str) -> None:
        with self._lock:
            self._known[identity] = None
            self._known.move_to_end(identity)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)

    def __contains__(self, identity: object) -> bool:
        return identity in self._known


@dataclass(eq=False)
class _Waiting:
    client: str


class Places:
    """The places of one kind in one process."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._running: Counter[str] = Counter()  # by client
        self._waiting: list[_Waiting] = []  # the oldest first

    def take(self, client: str) -> bool:
        """Wait for a place; False if there is none. Give it back when the response is complete."""
        mine = _Waiting(client)
        with self._changed:
            of_client = sum(other.client == client for other in self._waiting)
            if len(self._waiting) >= MAX_WAITING or of_client >= MAX_WAITING_OF_CLIENT:
                return False
            self._waiting.append(mine)
            taken = self._changed.wait_for(lambda: self._next() is mine, self._wait_s)
            self._waiting.remove(mine)
            self._running[client] += taken
            self._changed.notify_all()
            return taken

    def give_back(self, client: str) -> None:
        with self._changed:
            self._running -= Counter([client])  # forgets clients without a running request
            self._changed.notify_all()

    def _next(self) -> _Waiting | None:
        if self._running.total() >= RUNNING:
            return None
        return min(self._waiting, key=lambda waiting: self._running[waiting.client], default=None)
