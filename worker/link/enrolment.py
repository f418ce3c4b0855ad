"""The state directory, the enrolment in it, and the server's public keys.

The state directory holds worker.json (the enrolment, 0600), journal.db, spool.db and
files.db. A directory that others may read is refused, because worker.json holds the
host's token.
"""

import base64
import binascii
import fcntl
import ipaddress
import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec

from worker.contract.base import Failed, is_id
from worker.contract.signing import Endorsement, endorsed, key_id

log = logging.getLogger(__name__)

STATE_VARIABLE = "SWEETSPOT_WORKER_STATE"
POLICY_VARIABLE = "SWEETSPOT_WORKER_POLICY"
SYSTEM_STATE = Path("/var/lib/sweetspot-worker")
SYSTEM_POLICY = Path("/etc/sweetspot-worker/policy.toml")
RUN = Path("/run/sweetspot-worker")  # locks of identities


class ConfigError(Failed):
    """The worker's setup is wrong; the message says what, where and what to do."""


class Enrolment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of worker.json. It holds the host's token and the broker's password, so it is never printed whole."""

    host: str
    host_name: str
    server: str
    host_token: str
    broker_url: str
    public_keys: dict[str, str]  # key id -> base64 of the raw Ed25519 key
    contract: int
    ca_file: str = ""  # certificates to trust instead of the system's

    def __repr__(self) -> str:
        return f"Enrolment(host={self.host!r}, name={self.host_name!r}, server={self.server!r})"

    @property
    def broker_tls(self) -> dict[str, object]:
        """redis-py's options for a rediss:// broker: verify certificate and name. {} for redis://."""
        if urlsplit(self.broker_url).scheme == "redis":
            return {}
        trust: dict[str, object] = {"ssl_ca_certs": self.ca_file} if self.ca_file else {}
        return {"ssl_cert_reqs": "required", "ssl_check_hostname": True, **trust}

    @property
    def broker_address(self) -> str:
        """The broker's URL without user and password."""
        return without_password(self.broker_url)


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    """The paths a worker process uses."""

    state: Path
    policy: Path

    @property
    def enrolment(self) -> Path:
        return self.state / "worker.json"

    @property
    def journal(self) -> Path:
        return self.state / "journal.db"

    @property
    def spool(self) -> Path:
        return self.state / "spool.db"

    @property
    def capabilities(self) -> Path:
        return self.state / "capabilities.json"

    @property
    def files(self) -> Path:
        return self.state / "files.db"

    @property
    def drives(self) -> Path:
        return self.state / "drives"


def find_paths(*, state: str | None = None, policy: str | None = None) -> Paths:
    """Paths from the options, else from the environment, else the system's (root) or the user's defaults."""
    chosen = state or os.environ.get(STATE_VARIABLE) or ""
    default = SYSTEM_STATE if os.geteuid() == 0 else Path.home() / ".local/state/sweetspot-worker"
    directory = Path(chosen).absolute() if chosen else default
    return Paths(state=directory, policy=_find_policy(policy or os.environ.get(POLICY_VARIABLE) or "", directory))


def _find_policy(chosen: str, state: Path) -> Path:
    if chosen:
        return Path(chosen).absolute()
    in_state = state / "policy.toml"
    return in_state if in_state.exists() or os.geteuid() != 0 else SYSTEM_POLICY


def prepare_state(state: Path) -> None:
    """Create the state directory; refuse one that other users can access."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = state.stat()
    except OSError as error:
        raise ConfigError("state_unusable", f"The state directory {state} cannot be used: {error}.") from error
    if facts.st_uid != os.geteuid():
        raise ConfigError(
            "state_not_ours",
            f"The state directory {state} belongs to user {facts.st_uid}, this process is user {os.geteuid()}. "
            "Start the worker as that user, or name another directory with --state.",
        )
    if facts.st_mode & 0o077:
        raise ConfigError(
            "state_open_to_others",
            f"The state directory {state} is accessible to other users (mode {facts.st_mode & 0o777:o}). "
            f"It contains the host's token: chmod 700 {state}",
        )


@contextmanager
def sole_use(state: Path) -> Iterator[None]:
    """Lock the state directory, and the identity in it: two workers would both change settings.

    The second lock also refuses a worker with a copy of the directory on the same host. Raises ConfigError.
    """
    with ExitStack() as locks:
        locks.enter_context(_locked(state / "lock", "state_in_use", f"Another worker process uses {state}."))
        if host := _identity(state):
            words = f"Another worker process has the identity of this host ({host}): {state} seems to be a copy."
            try:
                RUN.mkdir(mode=0o700, parents=True, exist_ok=True)
                locks.enter_context(_locked(RUN / f"{host}.lock", "identity_in_use", words, remove=True))
            except OSError as error:  # without root, settings cannot be changed
                log.debug("A second worker with a copy of %s would not be noticed here: %s", state, error)
        yield


@contextmanager
def _locked(path: Path, code: str, words: str, *, remove: bool = False) -> Iterator[None]:
    """Hold the lock of a file. `remove`: remove the file at the end."""
    fd = _lock(path, code, words)
    try:
        yield
    finally:
        if remove:
            path.unlink(missing_ok=True)
        os.close(fd)


def _lock(path: Path, code: str, words: str) -> int:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(fd)):
                return fd
        except BlockingIOError as error:
            os.close(fd)
            raise ConfigError(code, f"{words} Stop it first, or name another directory with --state.") from error
        os.close(fd)  # the holder before has just removed the file


class _Identity(msgspec.Struct):
    host: str


def _identity(state: Path) -> str:
    """The host's id; "" before its enrolment."""
    try:
        host = msgspec.json.decode((state / "worker.json").read_bytes(), type=_Identity).host
    except (OSError, msgspec.DecodeError):
        return ""
    return host if is_id(host) else ""


def load_enrolment(paths: Paths) -> Enrolment:
    """Read worker.json; raises ConfigError if it is missing, damaged or open to others."""
    prepare_state(paths.state)
    path = paths.enrolment
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise ConfigError("enrolment_open_to_others", f"{path} is readable by other users: chmod 600 {path}")
            enrolment = msgspec.json.decode(file.read(), type=Enrolment)
    except FileNotFoundError as error:
        raise ConfigError(
            "not_enrolled",
            f"This host is not enrolled ({path} is missing). "
            "Run: sweetspot-worker enrol --server URL --token TOKEN (the server's page “Add host” shows the command)",
        ) from error
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(
            "enrolment_damaged", f"{path} cannot be read: {error}. Enrol again with --replace."
        ) from error
    check_server_url(enrolment.server)
    check_broker_url(enrolment.broker_url)
    return enrolment


def save_enrolment(paths: Paths, enrolment: Enrolment) -> None:
    """Write worker.json atomically."""
    prepare_state(paths.state)
    temporary = paths.enrolment.with_suffix(".new")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(msgspec.json.format(msgspec.json.encode(enrolment), indent=2))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(paths.enrolment)


def check_server_url(url: str) -> str:
    """Return the URL without a trailing slash; refuse one that would send the token unencrypted."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ConfigError("server_url", f"{url!r} is not a server address. Give one like https://sweetspot.example.org")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ConfigError(
            "server_url_plain",
            f"{url} is plain HTTP to another machine: the host's token would be sent unencrypted. Use https://",
        )
    return url.rstrip("/")


def check_broker_url(url: str) -> None:
    """Refuse a broker connection that would send this host's password unencrypted."""
    parts = urlsplit(url)
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise ConfigError(
            "broker_url", f"The server names {without_password(url)!r} as its broker, which is not a Redis URL."
        )
    if parts.scheme == "redis" and not is_loopback(parts.hostname):
        raise ConfigError(
            "broker_url_plain",
            f"The server's broker {without_password(url)} is not encrypted: this host's password would be sent "
            "unencrypted. On the server, set SWEETSPOT_WORKER_REDIS_URL to a rediss:// address.",
        )


def is_loopback(hostname: str) -> bool:
    if hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return False


def without_password(url: str) -> str:
    """Keep only scheme, address and path of a URL, so that it may be shown."""
    parts = urlsplit(url)
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, address, parts.path, "", ""))


# The server's public keys, and the enrolment in which they are stored.


def read_keys(texts: Mapping[str, str]) -> dict[str, bytes]:
    """Decode keys, by id; raises ConfigError if a key does not match its id."""
    keys: dict[str, bytes] = {}
    for name, text in texts.items():
        try:
            raw = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ConfigError("server_key", f"The server's key {name} is not base64.") from error
        if len(raw) != 32 or key_id(raw) != name:
            raise ConfigError("server_key", f"The server's key {name} is not an Ed25519 key with that fingerprint.")
        keys[name] = raw
    return keys


def accepted_keys(
    known: Mapping[str, bytes], offered: Mapping[str, str], endorsements: Sequence[Endorsement]
) -> dict[str, str]:
    """The offered keys that this host knows or that a known key endorses; all known ones if that leaves none.

    So a server in the middle can withhold keys, but not add its own.
    """
    trusted = endorsed(endorsements, known)
    strangers = offered.keys() - trusted.keys()
    if strangers:
        log.error("Keys that no trusted key of the server has signed are ignored: %s", ", ".join(sorted(strangers)))
    accepted = [name for name in offered if name in trusted] or list(known)
    return {name: base64.b64encode(trusted[name]).decode() for name in accepted}


class EnrolmentStore:
    """The enrolment in memory and on disk. A change is atomic; any thread may make one."""

    def __init__(self, paths: Paths, enrolment: Enrolment) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self.enrolment = enrolment

    def change(self, **changes: object) -> None:
        """Raises OSError if it cannot be written; then nothing has changed."""
        with self._lock:
            changed: Enrolment = msgspec.structs.replace(self.enrolment, **changes)
            save_enrolment(self._paths, changed)
            self.enrolment = changed
