"""A real worker process for tests: enrolled with a test peer, taking signed orders from a real Redis."""

import base64
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import uuid
from itertools import product
from pathlib import Path
from typing import Any

import redis
from celery import Celery
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from worker.contract.base import encode
from worker.contract.orders import ORDER_TASK, AnyOrder, SettingRequest, TrialOrder, queue_name
from worker.contract.signing import Envelope, key_id, seal
from worker.contract.workload import FioWorkload, Stream, TargetRef
from worker.link.enrolment import Enrolment, Paths, save_enrolment
from worker.tests.peer import TOKEN, Peer
from worker.tests.waiting import until

REDIS_URL = os.environ.get("SWEETSPOT_REDIS_URL", "redis://127.0.0.1:1/0")  # port 1: nobody answers
ROOT = Path(__file__).parents[2]


class Bench:
    """One host: its state directory, the peer it reports to, and its worker process when started."""

    capabilities = b""  # found by the first of all tests, so that not every one tries every engine

    def __init__(self, tmp_path: Path, policy: str, *, broker_url: str = REDIS_URL, host: str = "") -> None:
        self.host = host or f"test-{secrets.token_hex(4)}"
        self.private_key = Ed25519PrivateKey.generate().private_bytes_raw()
        public = Ed25519PrivateKey.from_private_bytes(self.private_key).public_key().public_bytes_raw()
        keys = {key_id(public): base64.b64encode(public).decode()}
        self.peer = Peer(host=self.host, broker_url=broker_url, keys=keys)
        self.paths = Paths(state=tmp_path / "state", policy=tmp_path / "policy.toml")
        self.paths.policy.write_text(policy)
        self.paths.policy.chmod(0o600)
        self.log = tmp_path / "worker.log"
        self.redis = redis.Redis.from_url(REDIS_URL)
        self._sender = Celery("server", broker=REDIS_URL, set_as_current=False)
        self._sender.conf.broker_transport_options = {"priority_steps": [0]}
        self.process: subprocess.Popen[bytes] | None = None
        save_enrolment(self.paths, self._enrolment(keys, broker_url))

    def _enrolment(self, keys: dict[str, str], broker_url: str) -> Enrolment:
        return Enrolment(
            host=self.host,
            host_name="store-1",
            server=self.peer.url,
            host_token=TOKEN,
            broker_url=broker_url,
            public_keys=keys,
            contract=1,
        )

    @property
    def queue(self) -> str:
        return queue_name(self.host)

    # ---- the worker

    def start(self, **environment: str) -> None:
        """Start it and wait until it takes orders."""
        seen = len(self.log_text())
        self.launch(**environment)
        self.await_log(r"sweetspot@\S+ ready", after=seen)
        Bench.capabilities = self.paths.capabilities.read_bytes()

    def launch(self, **environment: str) -> None:
        if Bench.capabilities and not self.paths.capabilities.exists():
            self.paths.capabilities.write_bytes(Bench.capabilities)
        command = [sys.executable, "-m", "worker", "--state", str(self.paths.state), "--policy", str(self.paths.policy)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "start"], cwd=ROOT, stdout=log, stderr=log, env={**os.environ, **environment}
            )

    def stop(self, *, limit_s: float = 30) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(limit_s)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.peer.down()
        for key in self.redis.scan_iter(f"*{self.queue}*"):
            self.redis.delete(key)

    def log_text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def await_log(self, pattern: str, *, after: int = 0, limit_s: float = 20) -> None:
        def there() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.log_text()[after:]
            return re.search(pattern, self.log_text()[after:]) is not None

        until(there, limit_s, lambda: f"{pattern!r} is not in the log:\n{self.log_text()[after:]}")

    # ---- the server's side

    def send(self, order: AnyOrder, *, key: bytes | None = None) -> str:
        self.send_text(seal(order, key or self.private_key))
        return order.attempt

    def signed(self, text: str) -> str:
        """The envelope of an order that this version of the worker cannot read."""
        key = Ed25519PrivateKey.from_private_bytes(self.private_key)
        signature = base64.b64encode(key.sign(text.encode())).decode()
        name = key_id(key.public_key().public_bytes_raw())
        return encode(Envelope(key_id=name, order=text, signature=signature)).decode()

    def send_text(self, text: str) -> None:
        self._sender.send_task(ORDER_TASK, args=[text], queue=self.queue, ignore_result=True)

    def trial(self, target: TargetRef, workload: FioWorkload, *settings: SettingRequest, **more: Any) -> TrialOrder:
        return TrialOrder(
            streams=(Stream(number=0, target=target, workload=workload),),
            settings=settings,
            **{**self.head(), "run": str(uuid.uuid4()), "trial": str(uuid.uuid4()), **more},
        )

    def head(self) -> dict[str, Any]:
        now = time.time()
        return {"host": self.host, "attempt": str(uuid.uuid4()), "issued_at": now, "expires_at": now + 300}


def cpu_s(pid: int) -> float:
    """User and system time of a process so far, in s (/proc/<pid>/stat, fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fio_processes(directory: str) -> list[int]:
    """Running fio processes with an open file below `directory`. Their own paths do not tell: they may work on a
    private copy of its mount.
    """
    below = [Path(directory).stat(), *(place.stat() for place in Path(directory).rglob("*"))]
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (entry / "comm").read_text().strip() != "fio":
                continue
            places = [place.stat() for place in (entry / "cwd", *(entry / "fd").iterdir())]
            if any(os.path.samestat(*pair) for pair in product(places, below)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def dump(value: object) -> str:
    return json.dumps(value)
