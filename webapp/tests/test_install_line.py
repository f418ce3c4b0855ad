"""The line of the page “Add host”, pasted into a bare Debian 12: its worker is heard and takes its first target.

Needs root and a bare Debian in a folder that may be spoilt, because it takes Debian's and Python's packages:

    mmdebstrap --variant=minbase --include=ca-certificates,curl bookworm /var/tmp/bare
    BARE_DEBIAN=/var/tmp/bare make test ARGS="webapp/tests/test_install_line.py"
"""

import os
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

from webapp.hosts.installer import install_line, upgrade_line
from webapp.hosts.keys import signing_key
from webapp.hosts.models import Host, Target
from webapp.hosts.services import issue_enrolment_token
from webapp.tests.system import Process, System

BARE = os.environ.get("BARE_DEBIAN", "")
pytestmark = [
    pytest.mark.pipeline,
    pytest.mark.root,
    pytest.mark.skipif(not BARE or os.geteuid() != 0, reason="no BARE_DEBIAN, or not root"),
]
LIMIT_S = 600
# A mount namespace of its own: what is mounted in it goes with it, and nothing of the host's is written.
ENTER = """
set -e; cd "$0"; mkdir -p proc sys dev opt/wheels
mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev; cp /etc/resolv.conf etc/resolv.conf
mount --bind -o ro /etc/ssl/certs etc/ssl/certs
[ ! -d /opt/wheels ] || mount --bind -o ro /opt/wheels opt/wheels
exec chroot . /bin/sh -c "$1"
"""


def entered(line: str) -> list[str]:
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, BARE, line]


def pasted(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(entered(line), capture_output=True, text=True, timeout=LIMIT_S, check=False)


def test_it_turns_a_bare_debian_into_a_host(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "PUBLIC_URL", system.web.url)
    key, _ = signing_key()
    token = issue_enrolment_token(by=None, slug="fresh")
    done = pasted(install_line(token=token, key=key, again=False))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "there is no systemd here" in done.stdout
    assert "allows nothing yet" in done.stdout
    assert Host.objects.get().slug == "fresh"

    root = Path(BARE)
    assert (root / "var/lib/sweetspot-worker/worker.json").stat().st_mode & 0o777 == 0o600
    scratch = root / "srv/scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    with (root / "etc/sweetspot-worker/policy.toml").open("a") as policy:
        policy.write('[[target]]\nid = "scratch"\nkind = "directory"\npath = "/srv/scratch"\n')
    worker = Process(
        entered("exec /usr/local/bin/sweetspot-worker start"), system.folder / "fresh.log", dict(os.environ)
    )
    try:
        usable = Target.objects.filter(host__slug="fresh", slug="scratch", present=True)
        system.until(usable.exists, limit_s=90, what="the target is usable")
        assert Host.objects.get().capabilities["engines"]["fio"]["version"].startswith("fio-3")
    finally:
        worker.stop()

    again = pasted(install_line(token=issue_enrolment_token(by=None), key=key, again=False))
    assert again.returncode == 1
    assert "enrolled already" in again.stderr
    assert pasted(upgrade_line()).returncode == 0
    host = Host.objects.get()
    renewed = pasted(install_line(token=issue_enrolment_token(by=None, host=host), key=key, again=True))
    assert renewed.returncode == 0, renewed.stderr
    assert Host.objects.get().pk == host.pk
