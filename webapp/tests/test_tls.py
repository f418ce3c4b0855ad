"""The whole way encrypted: gunicorn and Redis with certificates of an authority of one's own, a real worker."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.core.management import call_command
from pytest_django import DjangoDbBlocker, Settings

from dev.stack import redis_server
from dev.stack.network import free_port
from webapp.deploy import certificates
from webapp.hosts.installer import upgrade_line, worker_wheel
from webapp.hosts.models import Host
from webapp.hosts.services import issue_enrolment_token
from webapp.plans.services import create_plan
from webapp.runs.models import Run
from webapp.tests.conftest import SCRATCH
from webapp.tests.system import ROOT, Process, StorageHost, System, Web, await_true
from webapp.tests.whole_runs import assert_whole, plan
from worker.link.enrolment import Enrolment, Paths, load_enrolment, save_enrolment

pytestmark = [pytest.mark.pipeline]

PASSWORD = "password-of-the-test-0123456789abcdef"


class TlsRedis:
    """Redis as docs/how-to/encryption.md describes it."""

    def __init__(self, folder: Path, tls: Path) -> None:
        self.port = free_port()
        users = folder / "users.acl"
        users.write_text(f"user default off\nuser sweetspot on >{PASSWORD} {redis_server.SERVER_RIGHTS}\n")
        options = {
            "bind": "127.0.0.1", "port": "0", "tls-port": str(self.port), "tls-cert-file": str(tls / "server.crt"),
            "tls-key-file": str(tls / "server.key"), "tls-ca-cert-file": str(tls / "ca.crt"), "tls-auth-clients": "no",
            "aclfile": str(users), "dir": str(folder), "save": '""',
        }  # fmt: skip
        config = folder / "redis.conf"
        config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        program = shutil.which("redis-server") or str(redis_server.SAME_PROGRAM)
        # The program looks at the name that it is called by.
        argv = ["bash", "-c", f'exec -a redis-server "{program}" "$0"', str(config)]
        self.process = Process(argv, folder / "redis.log", {})
        await_true(self._answers, limit_s=15, what="Redis answers")

    @property
    def url(self) -> str:
        return f"rediss://sweetspot:{PASSWORD}@localhost:{self.port}/0"

    def _answers(self) -> bool:
        assert not self.process.ended(), self.process.log.read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class TlsWeb(Web):
    def __init__(self, folder: Path, tls: Path, broker: TlsRedis) -> None:
        super().__init__(folder)
        self.url = self.url.replace("http://127.0.0.1", "https://localhost")
        self.trust = ssl.create_default_context(cafile=tls / "ca.crt")
        self.environment |= {
            "SWEETSPOT_PUBLIC_URL": self.url,
            "SWEETSPOT_REDIS_URL": broker.url,
            "SWEETSPOT_REDIS_CA": str(tls / "ca.crt"),
            "SWEETSPOT_AUTHORITY": str(tls / "ca.crt"),
            "SWEETSPOT_HTTPS": "1",
            "GUNICORN_CMD_ARGS": f"--certfile {tls / 'server.crt'} --keyfile {tls / 'server.key'}",
        }


class TlsHost(StorageHost):
    ca = Path()

    def enrol(self) -> None:
        token = issue_enrolment_token(by=None, slug=self.slug)
        self.run("enrol", "--server", self._web.url, "--ca", str(self.ca), "--token", token)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    assert certificates.ensure(folder, folder, ["localhost"])
    return folder


@pytest.fixture(scope="module")
def encrypted(
    test_database: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory, tls: Path
) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("encrypted")
    with django_db_blocker.unblock():
        broker = TlsRedis(folder, tls)
        system = System(folder, TlsWeb(folder, tls, broker))
        system.web.start()
        try:
            yield system
        finally:
            system.stop_hosts()
            system.web.stop()
            broker.process.stop()
            call_command("flush", interactive=False, verbosity=0)


@pytest.fixture(scope="module")
def storage(encrypted: System, tls: Path) -> StorageHost:
    place = encrypted.folder / "scratch"
    place.mkdir()
    host = TlsHost(encrypted.folder, encrypted.web, "behind-tls", SCRATCH.format(path=place), lambda argv: argv)
    host.ca = tls / "ca.crt"
    encrypted.hosts.append(host)
    host.enrol()
    return host


def test_it_measures_with_everything_encrypted(encrypted: System, storage: StorageHost) -> None:
    """This process has another broker, so the run is started by a command in the server's own environment."""
    assert storage.enrolment["broker_url"].startswith("rediss://host.0.")
    storage.start()
    slug = create_plan(document=plan(repeats=2), by=None).slug
    argv = [sys.executable, "manage.py", "run_plan", slug, "--host", storage.slug, "--target", "scratch", "--wait"]
    environment = encrypted.web.environment
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr + storage.log
    assert_whole(Run.objects.get())
    assert "rediss://localhost" in storage.run("doctor")
    assert "NOPERM" not in storage.log
    storage.stop()


def test_it_keeps_its_token_from_a_server_whose_certificate_it_does_not_trust(
    encrypted: System, storage: StorageHost, tmp_path: Path, tls: Path
) -> None:
    certificates.ensure(tmp_path, tmp_path, ["localhost"])  # somebody else's authority
    for url, ca in (
        (encrypted.web.url, tmp_path / "ca.crt"),
        (encrypted.web.url, None),
        (encrypted.web.url.replace("localhost", "127.0.0.1"), tls / "ca.crt"),
    ):
        token = issue_enrolment_token(by=None, slug="wary")
        options = ["--server", url, "--token", token, *(["--ca", str(ca)] if ca else [])]
        argv = [sys.executable, "-m", "worker", "--state", str(tmp_path / "state"), "enrol", *options]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert "certificate" in done.stderr.lower()
        assert not Host.objects.filter(slug="wary").exists()
    assert not (tmp_path / "state" / "worker.json").exists()


def test_the_pasted_line_brings_the_private_authority_along(
    encrypted: System, settings: Settings, tmp_path: Path, tls: Path
) -> None:
    settings.PUBLIC_URL, settings.AUTHORITY = encrypted.web.url, str(tls / "ca.crt")
    fetched, run, _ = upgrade_line().partition(' && sh "$f"')
    script = subprocess.run(["sh", "-c", f'{fetched} && cat "$f"'], capture_output=True, text=True, check=True).stdout
    assert run
    assert (tls / "ca.crt").read_text().strip() in script
    assert subprocess.run(["curl", "-fsS", encrypted.web.url], capture_output=True, check=False).returncode == 60
    address = f"{encrypted.web.url}/worker/{worker_wheel().version}/{worker_wheel().filename}"
    trusted = ["curl", "-fsS", "--cacert", str(tls / "ca.crt"), "-o", str(tmp_path / "wheel"), address]
    assert subprocess.run(trusted, capture_output=True, check=False).returncode == 0
    assert (tmp_path / "wheel").read_bytes() == worker_wheel().content
    served = ["curl", "-fsSk", f"{encrypted.web.url}/ca.crt"]
    assert subprocess.run(served, capture_output=True, check=True).stdout == (tls / "ca.crt").read_bytes()


def test_it_keeps_its_password_from_a_broker_whose_certificate_it_does_not_trust(
    storage: StorageHost, tmp_path: Path
) -> None:
    certificates.ensure(tmp_path, tmp_path, ["localhost"])
    paths = Paths(state=tmp_path / "state", policy=tmp_path / "policy.toml")
    save_enrolment(paths, Enrolment(**{**storage.enrolment, "ca_file": str(tmp_path / "ca.crt")}))
    argv = [sys.executable, "-m", "worker", "--state", str(paths.state), "doctor", "--json"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    broken = {check["name"] for check in json.loads(done.stdout) if check["state"] == "broken"}
    assert {"server"} <= broken
    own = load_enrolment(paths)
    with pytest.raises(redis.ConnectionError, match=r"(?i)certificate"):
        redis.Redis.from_url(own.broker_url, **own.broker_tls).ping()


def test_it_talks_to_nobody_without_encryption(encrypted: System, storage: StorageHost) -> None:
    port = int(storage.enrolment["broker_url"].rsplit(":", 1)[1].split("/")[0])
    with pytest.raises((redis.ConnectionError, redis.TimeoutError)):
        redis.Redis(host="127.0.0.1", port=port, socket_timeout=3).ping()


@pytest.mark.parametrize(
    ("name", "url", "words"),
    [
        ("SWEETSPOT_REDIS_URL", "redis://sweetspot:x@redis.example:6379/0", "in the clear"),
        ("SWEETSPOT_REDIS_URL", "redis://:x@127.0.0.1:6379/0", "names no Redis user"),
        ("SWEETSPOT_REDIS_URL", "redis://default:x@127.0.0.1:6379/0", "names no Redis user"),
        ("SWEETSPOT_WORKER_REDIS_URL", "redis://redis.example:6379/0", "in the clear"),
        ("SWEETSPOT_REDIS_CA", "/nowhere/ca.crt", "there is no such file"),
        ("SWEETSPOT_LOG_FORMAT", "xml", "plain or json"),
    ],
)
def test_it_refuses_to_start_with_words(name: str, url: str, words: str) -> None:
    argv = [sys.executable, "manage.py", "check"]
    done = subprocess.run(
        argv, cwd=ROOT, env={**os.environ, name: url}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert words in done.stderr


def test_the_web_tier_uses_a_renewed_certificate_without_a_restart(encrypted: System, tls: Path) -> None:
    before = _serial(encrypted)
    (tls / "server.crt").unlink()
    assert certificates.ensure(tls, tls, ["localhost"])
    assert _serial(encrypted) != before


def _serial(system: System) -> object:
    port = int(system.web.url.rsplit(":", 1)[1])
    with (
        socket.create_connection(("localhost", port), timeout=20) as plain,
        (system.web.trust or ssl.create_default_context()).wrap_socket(plain, server_hostname="localhost") as client,
    ):
        certificate = client.getpeercert()
        assert certificate
        return certificate["serialNumber"]
