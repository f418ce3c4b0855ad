"""Places for requests that take much CPU time and memory, such as previews, comparisons and imports.

Each process works on RUNNING of each kind at a time; others wait in the threads for clients (`webapp.serving.worker`),
so that they occupy no thread of Django. The next one is the oldest of the client that has the fewest running: somebody
who sends many at a time delays their own.

    request → waits for a place → Django runs → response is complete
        └ too many wait, or it has waited too long → 503
"""

import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
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
KINDS = (QUESTIONS, UPLOADS)


def kind_of(path: str) -> Kind | None:
    """None for a request that is answered quickly."""
    return next((kind for kind in KINDS if kind.paths.match(path)), None)


def client_of(environ: Mapping[str, Any]) -> str:
    """Who sends the request: a link to a report, a token, a session, or an address."""
    if shared := _SHARED.match(environ["PATH_INFO"]):
        return shared[0]
    if token := environ.get("HTTP_AUTHORIZATION"):
        return str(token)
    try:
        session = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(SESSION_COOKIE)
    except CookieError:
        session = None
    return session.value if session else str(environ.get("REMOTE_ADDR", ""))


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
