"""The host's own facts for the server: at start, every minute while idle, and when the policy changes.

Looking at the hardware takes a moment and a little CPU, so it is only done while no trial
runs and none has just ended: whoever works keeps the greeter away.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from worker import __version__, inventory, policy
from worker.capabilities import known_capabilities
from worker.client import Client, Refused, Unreachable
from worker.config import Enrolment, Paths, save_enrolment
from worker.contract.base import CONTRACT_VERSION, OLDEST_UNDERSTOOD
from worker.contract.inventory import PolicyTarget
from worker.contract.reports import Hello, HelloReply
from worker.keys import read_keys

log = logging.getLogger(__name__)

EVERY_S = 60.0
LOOK_EVERY_S = 2.0
IDLE_S = 3.0  # so long after an order the next one is not expected within moments


class Greeter:
    """Sends Hello and keeps what the server answers: its clock and the keys to trust."""

    def __init__(
        self, paths: Paths, enrolment: Enrolment, client: Client, *, unfinished: Callable[[], tuple[str, ...]]
    ) -> None:
        self._quiet = threading.Lock()
        self._worked_at = -IDLE_S
        self.clock_ahead_s = 0.0  # the server's clock minus ours
        self.public_keys = read_keys(enrolment.public_keys)
        self._paths = paths
        self._enrolment = enrolment
        self._client = client
        self._unfinished = unfinished
        self._greeted_at = -EVERY_S
        self._policy_seen: object = None
        self._trouble = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="greeter", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    @contextmanager
    def kept_away(self) -> Iterator[None]:
        """No look at the hardware inside; one that is under way is waited for."""
        with self._quiet:
            try:
                yield
            finally:
                self._worked_at = time.monotonic()

    def server_now(self) -> float:
        """Unix time by the server's clock, by which orders expire."""
        return time.time() + self.clock_ahead_s

    def greet(self, *, probe: bool = False) -> None:
        """Look and tell; raises Unreachable or Refused. With `probe` what fio can do is tried afresh."""
        self._deliver(self._look(probe=probe))

    def _look(self, *, probe: bool = False) -> Hello:
        self._policy_seen = self._policy_state()
        self._greeted_at = time.monotonic()
        return self._hello(probe=probe)

    def _deliver(self, message: Hello) -> None:
        sent_at = time.time()
        reply = self._client.hello(message)
        self._learn(reply, (sent_at + time.time()) / 2)

    def _hello(self, *, probe: bool) -> Hello:
        found = inventory.take()
        return Hello(
            worker_version=__version__,
            oldest_contract=OLDEST_UNDERSTOOD,
            newest_contract=CONTRACT_VERSION,
            boot_id=found.kernel.boot_id,
            at=time.time(),
            inventory=found,
            capabilities=known_capabilities(self._paths.capabilities, afresh=probe),
            targets=read_targets(self._paths.policy),
            journal=self._unfinished(),
        )

    def _learn(self, reply: HelloReply, at: float) -> None:
        self.clock_ahead_s = reply.server_time - at
        if reply.message:
            log.info("The server says: %s", reply.message)
        if reply.public_keys and reply.public_keys != self._enrolment.public_keys:
            self.public_keys = read_keys(reply.public_keys)
            self._enrolment = msgspec.structs.replace(self._enrolment, public_keys=reply.public_keys)
            save_enrolment(self._paths, self._enrolment)
            log.warning("The server's keys are now %s.", ", ".join(self.public_keys))

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            due = time.monotonic() - self._greeted_at >= EVERY_S or self._policy_state() != self._policy_seen
            if due and time.monotonic() - self._worked_at >= IDLE_S:
                self.greet_if_possible()

    def greet_if_possible(self) -> None:
        """Greet unless an order is being worked on; trouble goes to the log, once for each kind.

        The greeter is in the way of orders while looking only: a server that does not answer keeps none waiting.
        """
        if not self._quiet.acquire(blocking=False):
            return
        try:
            try:
                message = self._look()
            finally:
                self._quiet.release()
            self._deliver(message)
            self._trouble = ""
        except (Unreachable, Refused) as error:
            if str(error) != self._trouble:
                log.warning("No hello to the server: %s", error)
            self._trouble = str(error)
        except Exception:
            log.exception("Looking at this host failed.")

    def _policy_state(self) -> object:
        return _modified(self._paths.policy)


def read_targets(path: Path) -> tuple[PolicyTarget, ...]:
    """What the policy allows and what is there of it; nothing where the policy cannot be read."""
    try:
        return policy.report(policy.load(path))
    except policy.PolicyError as error:
        log.error("The policy allows nothing, because it cannot be read: %s", error)
        return ()


def _modified(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_ino
