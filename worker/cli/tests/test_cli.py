"""The command line as people and programs use it, on this host's real fio."""

import base64
import errno
import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings

from worker.cli import main
from worker.cli.run_file import read_trial
from worker.contract.signing import key_id
from worker.contract.tests.damaged import damaged
from worker.guard.tests import rig
from worker.kernel.signatures import identity
from worker.link import registration
from worker.link.enrolment import ConfigError, find_paths, load_enrolment
from worker.process.run import find
from worker.recipes.layouts.problems import PACKAGES
from worker.tests.peer import ENROLMENT_TOKEN, TOKEN, Peer
from worker.tests.service_orders import POLICY

KEYS = {key_id(b"k" * 32): base64.b64encode(b"k" * 32).decode()}
WORKLOAD = {"pattern": "randread", "ioengine": "psync", "size_bytes": 4 << 20, "runtime_s": 1, "direct": False}


class Shell:
    """`sweetspot-worker` with a state directory and policy of its own."""

    def __init__(self, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.place = place
        self.folder = place / "target"
        self.folder.mkdir()
        self.policy = place / "policy.toml"
        self.policy.write_text(POLICY.format(path=self.folder))
        self.state = place / "state"
        self._capsys = capsys
        self.out = ""
        self.err = ""

    def __call__(self, *arguments: str) -> int:
        options = ["--state", str(self.state), "--policy", str(self.policy)]
        try:
            status = main([*options, *arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        self.out, self.err = self._capsys.readouterr()
        return status

    def trial_file(self, **content: object) -> str:
        path = self.place / "trial.json"
        path.write_text(json.dumps({"streams": [{"target": "scratch", "workload": WORKLOAD}], **content}))
        return str(path)


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, capsys)


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.down()


# ---- enrol


def test_it_enrols_once(shell: Shell, peer: Peer) -> None:
    enrol = ("enrol", "--server", peer.url, "--name", "store-1", "--token", ENROLMENT_TOKEN)
    peer.keys = KEYS
    assert shell(*enrol) == 0, shell.err
    assert "store-1" in shell.out
    assert TOKEN not in shell.out + shell.err
    enrolment = load_enrolment(find_paths(state=str(shell.state)))
    assert (enrolment.host, enrolment.server, enrolment.host_token) == ("h1", peer.url, TOKEN)
    assert shell(*enrol) == 2
    assert "--replace" in shell.err
    assert shell(*enrol, "--replace", "--json") == 0
    assert json.loads(shell.out)["host"] == "h1"


def test_it_keeps_nothing_of_a_server_with_another_key(shell: Shell, peer: Peer) -> None:
    peer.keys = KEYS
    enrol = ("enrol", "--server", peer.url, "--token", ENROLMENT_TOKEN, "--key", "0123456789abcdef")
    assert shell(*enrol) == 2
    assert "The connection may be intercepted" in shell.err
    assert not (shell.state / "worker.json").exists()
    peer.keys = {"0123456789abcdef": next(iter(KEYS.values()))}
    assert shell(*enrol) == 2
    assert "fingerprint" in shell.err


def test_it_says_why_enrolment_is_refused(shell: Shell, peer: Peer) -> None:
    assert shell("enrol", "--server", peer.url, "--token", "not-the-right-token") == 2
    assert "unknown, used or expired" in shell.err
    assert shell("enrol", "--server", "http://sweetspot.example.org", "--token", ENROLMENT_TOKEN) == 2
    assert "sent unencrypted" in shell.err


# ---- run


def test_it_runs_a_trial_from_a_file(shell: Shell) -> None:
    assert shell("run", shell.trial_file()) == 0, shell.out + shell.err
    assert "IOPS" in shell.out
    assert "p99" in shell.out
    assert shell.out.rstrip().endswith("Done.")


def test_it_prints_items_as_json_lines(shell: Shell) -> None:
    assert shell("run", shell.trial_file(), "--json") == 0, shell.err
    items = [json.loads(line) for line in shell.out.splitlines()]
    assert items[0]["type"] == "phase"
    assert items[-1] == {**items[-1], "type": "finished", "outcome": "done"}
    assert {"observed", "stream_started", "sample", "stream_result"} <= {item["type"] for item in items}


VALID_FILES = [
    json.dumps(content).encode()
    for content in (
        {"streams": [{"target": "scratch", "workload": WORKLOAD}]},
        {
            "streams": [{"target": "scratch", "workload": {**WORKLOAD, "engine": "fio"}, "number": 3, "name": "a"}],
            "settings": [{"name": "vm.dirty_ratio", "value": "5", "stream": 3}],
            "steps": [{"step": "write", "block_bytes": 131072, "times": 2}, {"step": "pause", "seconds": 1}],
            "armed_serials": ["x"], "drop_caches": True, "total_limit_s": 60,
        },
        {"streams": [{"target": "scratch", "workload": {"engine": "pgbench", "scale": 1, "runtime_s": 5}}]},
    )
]  # fmt: skip


@given(text=damaged(VALID_FILES))
@settings(max_examples=200, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(b'{"streams": 5}')
@example(b'{"streams": [5]}')
@example(b'{"streams": {"a": 1}}')
@example(b"[" * 100_000)
@example(b'{"streams": ' + b"[" * 100_000)
@example(b'{"streams": [], "armed_serials": 5}')
@example(b'{"streams": [{"target": "\\ud800"}]}')
@example(VALID_FILES[1].replace(b'"stream": 3', b'"stream": 4'))
@example(VALID_FILES[0].replace(b"}]}", b'}], "start_limit_s": 10}'))
@example(VALID_FILES[1].replace(b"131072", b"3"))
@example(b"\xff\xfe")
@example(b"")
def test_a_damaged_trial_file_ends_in_an_error_and_no_traceback(shell: Shell, text: bytes) -> None:
    path = shell.place / "damaged.json"
    path.write_bytes(text)
    status = shell("run", str(path), "--dry-run")
    assert status in (0, 2)
    assert status == 0 or shell.err


@pytest.mark.parametrize(
    "content", [b'{"streams": 5}', VALID_FILES[1].replace(b'"stream": 3', b'"stream": 4'), b"[" * 100_000]
)
def test_a_damaged_trial_file_has_a_code(shell: Shell, content: bytes) -> None:
    path = shell.place / "damaged.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_trial(path, find_paths(state=str(shell.state), policy=str(shell.policy)))
    assert caught.value.code == "trial_file"


def read_of(target: str, **workload: object) -> dict[str, object]:
    return {"streams": [{"target": target, "workload": WORKLOAD | workload}]}


def test_it_refuses_to_measure_reads_of_holes(shell: Shell) -> None:
    image = shell.place / "image"
    image.write_bytes(os.urandom(2 << 20))
    os.truncate(image, 4 << 20)
    shell.policy.write_text(FILE_TARGET.format(path=image))
    assert shell("run", shell.trial_file(**read_of("image"))) != 0
    assert f"50 % of {image} is unwritten (holes, or space without data): reads of it would not reach" in shell.out
    assert shell("run", shell.trial_file(**read_of("image", size_bytes=2 << 20))) == 0  # only the written part
    image.write_bytes(os.urandom(4 << 20))
    assert shell("run", shell.trial_file(**read_of("image"))) == 0, shell.out


def test_it_refuses_reads_of_a_large_file_with_a_small_hole(shell: Shell) -> None:
    """Less than 1 %, but a sequential trial that ends early could read nothing else."""
    image = shell.place / "image"
    with image.open("wb") as file:
        file.seek(2 << 20)
        for _ in range(254):
            file.write(os.urandom(1 << 20))
    shell.policy.write_text(FILE_TARGET.format(path=image))
    assert shell("run", shell.trial_file(**read_of("image", size_bytes=256 << 20))) != 0
    assert f"Less than 1 % of {image} is unwritten" in shell.out


def test_a_write_without_prefill_creates_its_file_again(shell: Shell) -> None:
    """A second trial would else overwrite the blocks that the first one allocated."""
    given = {"prefill": False, "pattern": "write", "runtime_s": None, "block_bytes": 4096}
    sizes = []
    for amount_bytes in (4 << 20, 8192):
        trial = read_of("scratch", **given, amount_bytes=amount_bytes)
        assert shell("run", shell.trial_file(**trial)) == 0, shell.out
        (file,) = shell.folder.glob(".sweetspot/sweetspot.*")
        sizes.append(file.stat().st_blocks * 512)
    assert sizes == [4 << 20, 8192]


def test_each_job_reads_its_own_prefilled_file(shell: Shell) -> None:
    given = {"numjobs": 2, "files": 2, "options": {"own_files": True}}
    assert shell("run", shell.trial_file(**read_of("scratch", **given))) == 0, shell.out
    files = shell.folder.glob(".sweetspot/sweetspot.*")
    assert sorted(file.name for file in files) == ["sweetspot.4194304.0", "sweetspot.4194304.1"]


def test_it_refuses_reads_of_an_own_file_with_holes(shell: Shell) -> None:
    assert shell("run", shell.trial_file(**read_of("scratch"))) == 0, shell.out
    (file,) = shell.folder.glob(".sweetspot/sweetspot.*")
    size = file.stat().st_size
    os.truncate(file, 0)
    os.truncate(file, size)
    assert shell("run", shell.trial_file(**read_of("scratch", prefill=False))) != 0
    assert "is unwritten" in shell.out
    assert "Set `prefill` to on." in shell.out
    assert shell("run", shell.trial_file(**read_of("scratch"))) == 0, shell.out  # prefilled: written completely


def test_it_does_not_advise_a_prefill_that_was_done(shell: Shell) -> None:
    assert shell("run", shell.trial_file(**read_of("scratch"))) == 0, shell.out
    (written,) = shell.folder.glob(".sweetspot/sweetspot.*")
    subprocess.run(["fallocate", "--zero-range", "--length", str(written.stat().st_size), written], check=True)
    assert shell("run", shell.trial_file(**read_of("scratch"))) != 0
    assert "is unwritten" in shell.out
    assert "Set `prefill` to on." not in shell.out
    assert "Remove it." in shell.out
    written.unlink()
    assert shell("run", shell.trial_file(**read_of("scratch"))) == 0, shell.out


def test_a_file_whose_extents_cannot_be_read_fails_the_trial(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the drive, not of the worker: dirty pages are written before the extents are read."""

    def broken(_fd: int, _length: int) -> int:
        raise OSError(errno.EIO, "")

    monkeypatch.setattr("worker.orders.preparation.unwritten_bytes", broken)
    assert shell("run", shell.trial_file(**read_of("scratch"))) == 1
    assert "cannot be read: Input/output error (errno 5)." in shell.out


def test_it_shows_the_job_without_running_it(shell: Shell) -> None:
    assert shell("run", shell.trial_file(), "--dry-run") == 0
    assert "rw=randread" in shell.out
    assert "rw=write" in shell.out  # the prefill
    assert list(shell.folder.iterdir()) == []
    assert not shell.state.exists()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_a_dry_run_uses_the_size_of_the_partition(shell: Shell, tmp_path: Path) -> None:
    file = rig.sparse(tmp_path / "disk.img")
    work = {"pattern": "randread", "ioengine": "psync", "runtime_s": 1}
    step = {"step": "write", "block_bytes": 1 << 20}
    with rig.loop(file) as device:
        part = rig.partition(device, "start=2048, size=32768")
        entry = {**rig.block(part, file, destroy=True), "stable_id": identity(Path(part).name)}
        shell.policy = rig.load(tmp_path, entry).path
        trial = shell.trial_file(streams=[{"target": "disk", "workload": work}], steps=[step])
        assert shell("run", trial, "--dry-run") == 0, shell.err
    assert [line for line in shell.out.splitlines() if line.startswith(("io_size=", "number_ios="))] == ["io_size=16m"]


def test_it_names_what_is_wrong_with_a_trial_file(shell: Shell) -> None:
    assert shell("run", shell.trial_file(streams=[{"target": "nowhere", "workload": WORKLOAD}])) == 2
    assert "'nowhere'" in shell.err
    assert "scratch" in shell.err
    assert shell("run", shell.trial_file(streams=[{"target": "scratch", "workload": {**WORKLOAD, "rw": "x"}}])) == 2
    assert "`rw`" in shell.err
    assert shell("run", shell.trial_file(streams=[])) == 2
    assert shell("run", str(shell.place / "missing.json")) == 2
    deep = {**WORKLOAD, "iodepth": 8}
    assert shell("run", shell.trial_file(streams=[{"target": "scratch", "workload": deep}])) == 2
    assert "sync_depth" in shell.err


def test_it_runs_nothing_that_the_policy_does_not_list(shell: Shell, tmp_path: Path) -> None:
    target = {"id": "x", "kind": "directory", "path": str(tmp_path), "stable_id": f"dir:{tmp_path}"}
    assert shell("run", shell.trial_file(streams=[{"target": target, "workload": WORKLOAD}])) == 1
    assert "guard_not_in_policy" in shell.out


def test_it_runs_two_streams_together(shell: Shell) -> None:
    streams = [{"target": "scratch", "workload": {**WORKLOAD, "seed": seed}} for seed in (1, 2)]
    assert shell("run", shell.trial_file(streams=streams), "--json") == 0, shell.out + shell.err
    items = [json.loads(line) for line in shell.out.splitlines()]
    results = [item for item in items if item["type"] == "stream_result"]
    assert sorted(item["stream"] for item in results) == [0, 1]
    assert abs(results[0]["started_at"] - results[1]["started_at"]) < 0.5


# ---- doctor, inventory, restore


def test_it_examines_a_host_that_is_not_enrolled(shell: Shell) -> None:
    status = shell("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(shell.out)}
    assert checks["fio"]["state"] == checks["file copy"]["state"] == "ok"
    assert checks["target"]["state"] == "ok"
    assert checks["enrolment"]["state"] == "note"
    assert status == int(any(check["state"] == "broken" for check in checks.values()))


FILE_TARGET = '[[target]]\nid = "image"\nkind = "file"\npath = "{path}"\n'


def test_it_warns_about_targets_whose_reads_reach_no_drive(shell: Shell) -> None:
    image = shell.place / "image"
    image.write_bytes(b"x" * 4096 * 39)
    os.truncate(image, 4096 * 100)
    with TemporaryDirectory(dir="/dev/shm") as memory:
        shell.policy.write_text(POLICY.format(path=memory) + FILE_TARGET.format(path=image))
        shell("doctor", "--json")
    found = [
        check["found"] for check in json.loads(shell.out) if check["name"] == "target" and check["state"] == "note"
    ]
    assert found[0].startswith(f"scratch: {memory} is on tmpfs, which is memory")
    assert found[1].startswith(f"image: 61 % of {image} is unwritten")
    assert len(found) == 2


POOL = """[[target]]
id = "drive"
kind = "block"
path = "/dev/disk/by-id/wwn-0x5002538800000001"
stable_id = "wwn-0x5002538800000001"
serial = "S1"
destroy = true

[[pool]]
id = "bench"
drives = ["drive"]
"""


@pytest.mark.root
def test_it_names_the_packages_that_layouts_of_a_pool_lack(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.policy.write_text(POOL)
    monkeypatch.setattr(registration, "find", lambda programs: "" if programs == ("mdadm",) else find(programs))
    shell("doctor", "--json")
    (check,) = (each for each in json.loads(shell.out) if each["name"] == "layouts")
    assert "md (package mdadm)" in check["found"]
    monkeypatch.setattr(registration, "find", lambda _: "")
    shell("doctor", "--json")
    (check,) = (each for each in json.loads(shell.out) if each["name"] == "layouts")
    assert all(f"{part} (package" in check["found"] for part in PACKAGES)


def test_it_finds_what_is_broken_and_says_what_to_do(shell: Shell, peer: Peer) -> None:
    peer.keys = KEYS
    shell("enrol", "--server", peer.url, "--token", ENROLMENT_TOKEN)
    shell.policy.write_text("[[target]\n")
    peer.down()
    assert shell("doctor") == 1
    for name in ("policy", "server", "broker"):
        assert f"BROKEN  {name}" in shell.out
    assert "→" in shell.out
    peer.up()


def test_it_checks_the_server_and_compares_clocks(shell: Shell, peer: Peer) -> None:
    peer.keys = KEYS
    shell("enrol", "--server", peer.url, "--token", ENROLMENT_TOKEN)
    shell("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(shell.out)}
    assert checks["server"]["state"] == "ok"
    assert checks["clock"]["state"] == "ok"
    assert len(peer.hellos) == 1


def test_it_prints_the_inventory(shell: Shell) -> None:
    assert shell("inventory", "--json") == 0
    assert json.loads(shell.out)["kernel"]["release"]
    assert shell("inventory") == 0
    assert "Memory" in shell.out
    assert "scratch" in shell.out


def test_it_reports_that_nothing_must_be_restored(shell: Shell) -> None:
    assert shell("restore") == 0
    assert "Nothing to restore" in shell.out


def test_it_says_that_something_it_cannot_read_stays_changed(shell: Shell) -> None:
    assert shell("restore") == 0
    with sqlite3.connect(find_paths(state=str(shell.state)).journal) as db:
        db.execute("insert into layouts (key, run, record) values ('k', 'r', 'damaged')")
    assert shell("restore") == 1
    assert "1 changed settings or layouts cannot be read from the journal" in shell.out
    assert "Nothing to restore" not in shell.out


def test_it_says_its_version(shell: Shell) -> None:
    assert shell("--version") == 0
    assert shell.out.startswith("sweetspot-worker ")


def test_it_explains_a_layout_without_touching_anything(shell: Shell) -> None:
    assert shell("layout", "2 arrays of raid5 x4 chunk 64k / lvm stripe 256k / xfs") == 0
    assert "LVM stripe: misaligned" in shell.out
    assert "mdadm --create /dev/md/sweetspot-preview-1" in shell.out
    assert shell("layout", "raid0 x2 chunk 64k", "--drive", "/dev/a", "--drive", "/dev/b", "--json") == 0
    (shown,) = json.loads(shell.out)
    assert shown["width_bytes"] == 128 * 1024
    assert shown["build"][-1]["argv"][-2:] == ["/dev/a", "/dev/b"]


def test_it_lists_a_sweep_of_layouts_and_says_what_is_wrong_with_one(shell: Shell) -> None:
    assert shell("layout", "raid5 x3..5 chunk 64k / xfs") == 0
    assert shell.out.count("raid5 x") == 3
    assert shell("layout", "raid5 x2 chunk 64k") == 2
    assert "at least 3 drives" in shell.err
    assert shell("layout", "raid0 x2 chunk 64k", "--drive", "/dev/a") == 2
    assert "has 2 drives, but 1 were given" in shell.err
