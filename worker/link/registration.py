"""The host's own facts for the server: at start, every minute while idle, and when the policy changes.

Looking at the hardware takes a moment and a little CPU, so it is only done while no trial
runs and none has just ended: whoever works keeps the greeter away.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from msgspec.structs import replace

from worker import __version__, inventory
from worker.contract.base import CONTRACT_VERSION, OLDEST_UNDERSTOOD
from worker.contract.controllers import Controller
from worker.contract.greetings import Hello, HelloReply
from worker.contract.inventory import PolicyTarget
from worker.contract.purge import PurgeOffer
from worker.drives import purge
from worker.inventory import controllers, health, sysfs
from worker.link.capabilities import known_capabilities
from worker.link.client import Client, Refused, Unreachable
from worker.link.enrolment import ConfigError, Paths, check_broker_url
from worker.link.keys import Keeper, read_keys
from worker.link.targets import read_policy, report_targets
from worker.log import hide_access
from worker.policy import Policy

T = TypeVar("T")
log = logging.getLogger(__name__)

EVERY_S = 60.0
LOOK_EVERY_S = 2.0
IDLE_S = 3.0  # so long after an order the next one is not expected within moments


class Greeter:
    """Sends Hello and keeps what the server answers: its clock and the keys to trust."""

    def __init__(
        self,
        paths: Paths,
        keeper: Keeper,
        client: Client,
        *,
        unfinished: Callable[[], tuple[str, ...]],
        built_on: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        self._quiet = threading.Lock()
        self._worked_at = -IDLE_S
        self.clock_ahead_s = 0.0  # the server's clock minus ours, when it was last heard
        self._server_zero = time.time() - time.monotonic()  # the server's clock when our monotonic one was 0
        self.public_keys = read_keys(keeper.enrolment.public_keys)
        self.token_due = threading.Event()  # the server wants this host to fetch a new token
        self._paths = paths
        self._keeper = keeper
        self._client = client
        self._unfinished = unfinished
        self._built_on = built_on
        self._greeted_at = -EVERY_S
        self._policy_seen: object = None
        self._trouble = ""
        self._health = Seldom(health.take)
        self._controllers = Seldom(controllers.ask_tools)
        self._purges = Purges()
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
        """Unix time by the server's clock, by which orders expire. Our own clock may jump, it does not matter."""
        return time.monotonic() + self._server_zero

    def greet(self, *, probe: bool = False) -> None:
        """Look and tell; raises Unreachable or Refused. With `probe` what fio can do is tried afresh."""
        self._deliver(self._look(probe=probe))

    def _look(self, *, probe: bool = False) -> Hello:
        self._policy_seen = self._policy_state()
        self._greeted_at = time.monotonic()
        return self._hello(probe=probe)

    def _deliver(self, message: Hello) -> None:
        sent_at = time.monotonic()
        reply = self._client.hello(replace(message, at=time.time()))
        self._learn(reply, (sent_at + time.monotonic()) / 2)

    def _hello(self, *, probe: bool) -> Hello:
        found = inventory.take(told=self._controllers.known(afresh=probe))
        allowed, policy_problem = read_policy(self._paths.policy)
        return Hello(
            worker_version=__version__,
            oldest_contract=OLDEST_UNDERSTOOD,
            newest_contract=CONTRACT_VERSION,
            boot_id=found.kernel.boot_id,
            at=time.time(),
            inventory=found,
            capabilities=known_capabilities(self._paths.capabilities, afresh=probe),
            targets=self._targets(allowed, found.controllers, afresh=probe) if allowed else (),
            health=self._health.known(afresh=probe),
            host_settings=allowed.host_settings if allowed else (),
            journal=self._unfinished(),
            trusted_keys=tuple(self.public_keys),
            policy_problem=policy_problem,
        )

    def _targets(
        self, allowed: Policy, controllers: tuple[Controller, ...], *, afresh: bool
    ) -> tuple[PolicyTarget, ...]:
        targets = report_targets(allowed, built_on=self._built_on(), controllers=controllers)
        return self._purges.added(targets, afresh=afresh)

    def _learn(self, reply: HelloReply, at: float) -> None:
        """`at` is when the server said so, by our monotonic clock."""
        self._server_zero = reply.server_time - at
        self.clock_ahead_s = self.server_now() - time.time()
        if reply.message:
            log.info("The server says: %s", reply.message)
        if reply.token_due:
            self.token_due.set()
        self._client.speak(reply.contract)
        if reply.contract != self._keeper.enrolment.contract:
            self._keeper.change(contract=reply.contract)
        if reply.public_keys and reply.public_keys != self._keeper.enrolment.public_keys:
            self.public_keys = read_keys(reply.public_keys)
            self._keeper.change(public_keys=reply.public_keys)
            self._greeted_at = -EVERY_S  # the server signs with a new key once it was told that it is trusted
            log.warning("The server's keys are now %s.", ", ".join(self.public_keys))

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            if self.token_due.is_set():
                self.renew_token()
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

    def renew_token(self) -> None:
        """Fetch a new host token and broker password, keep them, use them: in this order, so that those on our disk
        always open.

        Done while a trial runs, too: it takes no look at the hardware. What fails is tried again.
        """
        try:
            reply = self._client.new_token()
            hide_access(host_token=reply.host_token, broker_url=reply.broker_url)
            check_broker_url(reply.broker_url)
            self._keeper.change(host_token=reply.host_token, broker_url=reply.broker_url)
        except Refused as error:
            self.token_due.clear()  # an answer that was late: the token is new already
            log.info("No new token: %s", error)
        except (Unreachable, ConfigError, OSError) as error:
            log.warning("The new host token could not be fetched or kept, the old one still opens: %s", error)
        else:
            self._client.use_token(reply.host_token)
            self.token_due.clear()
            self._greeted_at = -EVERY_S  # say so soon: the first use ends the old one
            log.info("This host has a new token.")

    def _policy_state(self) -> object:
        return _modified(self._paths.policy)


class Seldom(Generic[T]):
    """What takes programs to find out, asked seldom: drives are woken from light sleep, controllers answer slowly."""

    EVERY_S = 600.0

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._found: T | None = None
        self._asked_at = 0.0

    def known(self, *, afresh: bool) -> T:
        if self._found is None or afresh or time.monotonic() - self._asked_at >= self.EVERY_S:
            self._found = self._ask()
            self._asked_at = time.monotonic()
        return self._found


class Purges:
    """How each drive that may be destroyed can be purged, asked as seldom as its health."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[float, tuple[PurgeOffer, ...]]] = {}

    def added(self, targets: tuple[PolicyTarget, ...], *, afresh: bool) -> tuple[PolicyTarget, ...]:
        return tuple(replace(target, purges=self._of(target, afresh=afresh)) for target in targets)

    def _of(self, target: PolicyTarget, *, afresh: bool) -> tuple[PurgeOffer, ...]:
        whole = bool(target.device) and target.opens == sysfs.device_path(target.device)
        if not target.destroy or not target.present or not whole:
            return ()
        key, now = (target.device, target.serial), time.monotonic()
        if afresh or key not in self._known or now - self._known[key][0] >= Seldom.EVERY_S:
            self._known[key] = (now, purge.offers(target.device))
        return self._known[key][1]


def _modified(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_ino
