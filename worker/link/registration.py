"""Register with the server: send version, policy, capabilities and inventory at start, every minute while idle, and
when the policy changes.

An inventory takes a moment and some CPU, so none is taken while an order is carried out, or shortly after one.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from worker import __version__, controllers, engines, guard, inventory, settings
from worker.contract.base import CONTRACT_VERSION, OLDEST_UNDERSTOOD
from worker.contract.greetings import SESSION_OTHER, Hello, HelloReply
from worker.contract.inventory import Capabilities, Controller, PolicyTarget, PurgeOffer
from worker.contract.layouts import FileSystem
from worker.controllers.tools import ADAPTERS
from worker.drives import purge
from worker.drives.records import Drives
from worker.inventory import health
from worker.inventory.devices import without_foreign_loops
from worker.journal import LayoutRecord
from worker.kernel import sysfs
from worker.kernel.files import load_state, save_state
from worker.kernel.usage import current_boot_id
from worker.link.client import Client, Refused, Unreachable
from worker.link.enrolment import ConfigError, EnrolmentStore, Paths, accepted_keys, check_broker_url, read_keys
from worker.link.session import NO_SESSION, Session
from worker.link.spool import RESERVE_BYTES, free_bytes
from worker.link.targets import read_policy, report_targets
from worker.log import hide_access
from worker.policy import Policy
from worker.process.run import ToolError, ask, find
from worker.settings.base import SettingScope

# The parts of layouts that this host can build: the kernel supports them, and their tools are installed.

# Part -> (sign of kernel support: a file and optionally a word in it; module; program).
_STACKS = {
    "md": (Path("/proc/mdstat"), "", "md-mod", "mdadm"),
    "lvm": (Path("/proc/misc"), "device-mapper", "dm-mod", "lvcreate"),
}


def offered() -> tuple[str, ...]:
    """`share`, `vd`, `md`, `lvm`, and file systems; (): not root, so none."""
    if os.geteuid() != 0:
        return ()
    stacks = [
        name for name, (file, word, module, tool) in _STACKS.items() if find((tool,)) and _known(file, word, module)
    ]
    kinds = [
        str(kind)
        for kind in FileSystem
        if kind is not FileSystem.NONE
        and find((f"mkfs.{kind}",))
        and _known(Path("/proc/filesystems"), f"\t{kind}\n", str(kind))
    ]
    made = any(find(adapter.programs) for adapter in ADAPTERS if adapter.makes_virtual_drives)
    return (*(["share"] if find(("sfdisk",)) else []), *(["vd"] if made else []), *stacks, *kinds)


def _known(file: Path, word: str, module: str) -> bool:
    """True if the kernel has it, or could load its module."""
    try:
        if word in file.read_text():
            return True
    except OSError:
        pass
    try:
        return ask("modprobe", "--dry-run", "--quiet", module).exit_code == 0
    except ToolError:
        return False


log = logging.getLogger(__name__)


# What this host can run, cached on disk, because trying the engines takes seconds.


class _Known(msgspec.Struct, frozen=True):
    """Cached capabilities. Another engine version, boot, user or worker version invalidates them."""

    key: str
    found: Capabilities


def known_capabilities(path: Path, *, refresh: bool = False) -> Capabilities:
    """Read the file at `path` if it is valid, else try every engine. `refresh` ignores the file."""
    key = _circumstances()
    known = None if refresh else load_state(path, _Known)
    if known is not None and known.key == key:
        return msgspec.structs.replace(known.found, settings=_settings_here(), layouts=offered())
    tried = msgspec.structs.replace(engines.capabilities(settings=_settings_here()), layouts=offered())
    try:
        save_state(path, _Known(key, tried))
    except OSError as error:
        log.warning("The engines will be tried again, because the result cannot be saved: %s", error)
    return tried


def _settings_here() -> tuple[str, ...]:
    """All settings of devices and controllers, and the host settings that this host has."""
    registered = settings.REGISTRY.values()
    return tuple(s.name for s in registered if s.scope is not SettingScope.HOST or s.discover(""))


def _circumstances() -> str:
    installed = " ".join(engine.installation() for engine in engines.ENGINES.values())
    return f"{installed} {current_boot_id()} {os.geteuid()} {__version__}"


T = TypeVar("T")

EVERY_S = 60.0
POLL_S = 2.0
IDLE_S = 3.0  # after an order; the next order of a run usually comes sooner


class Registration:
    """Sends the message Hello and keeps the answer: the server's clock and the keys to trust."""

    def __init__(
        self,
        paths: Paths,
        store: EnrolmentStore,
        client: Client,
        *,
        unfinished: Callable[[], tuple[str, ...]],
        built_on: Callable[[], Mapping[str, LayoutRecord]] = dict,
        session: Session = NO_SESSION,
    ) -> None:
        self.session = session
        self.is_second = False  # another worker with this identity holds the host's session
        self._idle = threading.Lock()
        self._worked_at = -IDLE_S
        self.clock_ahead_s = 0.0  # the server's clock minus the host's, at the last answer
        self.heard = False  # the server has answered, so its clock is known
        self._server_zero = time.time() - time.monotonic()  # the server's clock when the host's monotonic clock was 0
        self.public_keys = read_keys(store.enrolment.public_keys)
        self.token_due = threading.Event()  # the server asks this host to fetch a new token
        self._paths = paths
        self._store = store
        self._client = client
        self._unfinished = unfinished
        self._built_on = built_on
        self._registered_at = -EVERY_S
        self._policy_seen: object = None
        self._trouble = ""
        self._health = Cached(health.take)
        self._controllers = Cached(controllers.ask_tools)
        self._purges = PurgeOffers()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="registration", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take no inventory inside; wait for one that is being taken."""
        with self._idle:
            try:
                yield
            finally:
                self._worked_at = time.monotonic()

    def server_now(self) -> float:
        """Unix time by the server's clock, by which orders expire. Jumps of the host's clock do not matter."""
        return time.monotonic() + self._server_zero

    def register(self, *, probe: bool = False) -> None:
        """Collect and send. Raises Unreachable or Refused. `probe`: query drives, controllers and engines again."""
        self._deliver(self._collect(probe=probe))

    def _collect(self, *, probe: bool = False) -> Hello:
        self._policy_seen = self._policy_state()
        self._registered_at = time.monotonic()
        return self._hello(probe=probe)

    def _deliver(self, message: Hello) -> None:
        sent_at = time.monotonic()
        try:
            reply = self._client.hello(replace(message, at=time.time()))
        except Refused as error:
            self.is_second = error.code == SESSION_OTHER
            raise
        self.is_second = False
        self.session.accepted()
        self._learn(reply, (sent_at + time.monotonic()) / 2)

    def _hello(self, *, probe: bool) -> Hello:
        hardware = inventory.take(told=self._controllers.known(refresh=probe))
        allowed, policy_problem = read_policy(self._paths.policy)
        targets = self._targets(allowed, hardware.controllers, refresh=probe) if allowed else ()
        return Hello(
            worker_version=__version__,
            oldest_contract=OLDEST_UNDERSTOOD,
            newest_contract=CONTRACT_VERSION,
            boot_id=hardware.kernel.boot_id,
            at=time.time(),
            inventory=without_foreign_loops(hardware, {target.device for target in targets}),
            capabilities=known_capabilities(self._paths.capabilities, refresh=probe),
            targets=targets,
            health=self._health.known(refresh=probe),
            host_settings=allowed.host_settings if allowed else (),
            journal=self._unfinished(),
            trusted_keys=tuple(self.public_keys),
            policy_problem=policy_problem,
            session=self.session.id,
            earlier_sessions=self.session.earlier,
            state_disk_full=free_bytes(self._paths.state) < RESERVE_BYTES,
        )

    def _targets(
        self, allowed: Policy, controllers: tuple[Controller, ...], *, refresh: bool
    ) -> tuple[PolicyTarget, ...]:
        targets = report_targets(
            allowed,
            built_on=self._built_on(),
            controllers=controllers,
            drives=Drives(self._paths.drives),
            quarantined=guard.quarantined(self._paths.state),
        )
        return self._purges.added(targets, allowed, refresh=refresh)

    def _learn(self, reply: HelloReply, at: float) -> None:
        """`at`: when the server answered, by the host's monotonic clock."""
        self._server_zero = reply.server_time - at
        self.heard = True
        self.clock_ahead_s = self.server_now() - time.time()
        if reply.message:
            log.info("Message of the server: %s", reply.message)
        if reply.token_due:
            self.token_due.set()
        self._client.speak(reply.contract)
        try:
            self._save(reply)
        except OSError as error:
            log.warning("The server's reply cannot be saved; it will be saved after a later one: %s", error)

    def _save(self, reply: HelloReply) -> None:
        """Raises OSError if something new cannot be saved. Only keys that are saved are trusted."""
        if reply.contract != self._store.enrolment.contract:
            self._store.change(contract=reply.contract)
        keys = accepted_keys(self.public_keys, reply.public_keys, reply.endorsements)
        if keys != self._store.enrolment.public_keys:
            self._store.change(public_keys=keys)
            self.public_keys = read_keys(keys)
            self._registered_at = (
                -EVERY_S
            )  # register soon: the server signs with a new key once it knows that the host trusts it
            log.warning("The server's keys are now %s.", ", ".join(self.public_keys))

    def _run(self) -> None:
        while not self._stopping.wait(POLL_S):
            if self.token_due.is_set():
                self.renew_token()
            self.register_if_due()

    def register_if_due(self) -> None:
        due = time.monotonic() - self._registered_at >= EVERY_S or self._policy_state() != self._policy_seen
        if due and time.monotonic() - self._worked_at >= IDLE_S:
            self.register_if_idle()

    def register_if_idle(self) -> None:
        """Register unless an order is being carried out. Each kind of problem is logged once.

        Orders wait only while the inventory is taken, not for a server that does not answer.
        """
        if not self._idle.acquire(blocking=False):
            return
        try:
            try:
                message = self._collect()
            finally:
                self._idle.release()
            self._deliver(message)
            self._trouble = ""
        except (Unreachable, Refused) as error:
            if str(error) != self._trouble:
                log.warning("The registration was not delivered: %s", error)
            self._trouble = str(error)
        except Exception:
            log.exception("The inventory of this host could not be taken.")

    def renew_token(self) -> None:
        """Fetch a new host token and broker password, save them, then use them: those on disk are always valid.

        This is done during trials too. After a failure it is tried again.
        """
        try:
            reply = self._client.new_token()
            hide_access(host_token=reply.host_token, broker_url=reply.broker_url)
            check_broker_url(reply.broker_url)
            self._store.change(host_token=reply.host_token, broker_url=reply.broker_url)
        except Refused as error:
            self.token_due.clear()  # the answer to an earlier request was late: the token is new already
            log.info("No new token: %s", error)
        except (Unreachable, ConfigError, OSError) as error:
            log.warning("The new host token could not be fetched or saved; the old one is still valid: %s", error)
        else:
            self._client.use_token(reply.host_token)
            self.token_due.clear()
            self._registered_at = -EVERY_S  # register soon: the first use of the new token revokes the old one
            log.info("This host has a new token.")

    def _policy_state(self) -> object:
        return _modified(self._paths.policy)


class Cached(Generic[T]):
    """The answer of programs, kept for `EVERY_S`: asking wakes drives, and controllers answer slowly."""

    EVERY_S = 600.0

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._found: T | None = None
        self._asked_at = 0.0

    def known(self, *, refresh: bool) -> T:
        if self._found is None or refresh or time.monotonic() - self._asked_at >= self.EVERY_S:
            self._found = self._ask()
            self._asked_at = time.monotonic()
        return self._found


class PurgeOffers:
    """The purge methods of each drive that may be destroyed, asked as rarely as its health."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[float, tuple[PurgeOffer, ...]]] = {}

    def added(self, targets: tuple[PolicyTarget, ...], allowed: Policy, *, refresh: bool) -> tuple[PolicyTarget, ...]:
        """The problem of a method that the policy does not permit comes before that of the drive."""
        return tuple(replace(target, purges=self._permitted(target, allowed, refresh=refresh)) for target in targets)

    def _permitted(self, target: PolicyTarget, allowed: Policy, *, refresh: bool) -> tuple[PurgeOffer, ...]:
        entry = allowed.entry(target.id)
        return tuple(
            replace(offer, problem=(entry.purge_problem(offer.method) if entry else "") or offer.problem)
            for offer in self._of(target, refresh=refresh)
        )

    def _of(self, target: PolicyTarget, *, refresh: bool) -> tuple[PurgeOffer, ...]:
        whole = bool(target.device) and target.opens == sysfs.device_path(target.device)
        if not target.destroy or not target.present or not whole:
            return ()
        key, now = (target.device, target.serial), time.monotonic()
        if refresh or key not in self._known or now - self._known[key][0] >= Cached.EVERY_S:
            self._known[key] = (now, purge.offers(target.device))
        return self._known[key][1]


def _modified(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_ino
