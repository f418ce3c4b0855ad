"""docker-compose.yml and what belongs to it, as far as reading them tells; `make compose-check` runs them."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from webapp.deploy import compose
from webapp.plans.document import import_plan
from webapp.plans.grids import document_problems
from webapp.tests.compose_file import COMPOSE, SERVICES
from webapp.tests.system import ROOT

SECCOMP = json.loads((ROOT / "worker" / "deploy" / "seccomp.json").read_text())
REFUSED_BY_1_29 = ("name", "include", "configs", "develop")


@pytest.mark.parametrize("name", SERVICES)
def test_it_gives_a_container_nothing_it_does_not_need(name: str) -> None:
    service = SERVICES[name]
    assert not service.get("privileged")
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert "SYS_ADMIN" not in service.get("cap_add", [])
    assert not {"pid", "ipc", "network_mode", "userns_mode"} & service.keys()
    assert not any("docker.sock" in volume for volume in service["volumes"])


@pytest.mark.parametrize(
    "path",
    [
        "webapp/deploy/Dockerfile",
        "webapp/deploy/balancer/Dockerfile",
        "webapp/deploy/redis/Dockerfile",
        "worker/deploy/Dockerfile",
    ],
)
def test_it_runs_our_images_as_nobody_special(path: str) -> None:
    (user,) = re.findall(r"^USER (\S+)", (ROOT / path).read_text(), re.M)
    assert int(user.split(":")[0]) >= 10000


def test_only_what_signs_certificates_reaches_the_authoritys_key() -> None:
    reach = {name for name, service in SERVICES.items() for each in service["volumes"] if each.startswith("authority:")}
    assert reach == {"certificates", "renewal"}
    for name in reach:
        assert "ports" not in SERVICES[name]


def test_only_what_listens_reaches_the_key_of_the_certificate() -> None:
    reach = {name for name, service in SERVICES.items() for each in service["volumes"] if each.startswith("tls:")}
    listening = {"web", "balanced-web", "balancer", "redis"}
    assert reach == {"certificates", "renewal", *listening}
    assert all("tls:/tls:ro" in SERVICES[name]["volumes"] for name in listening)


def test_only_a_web_tier_without_a_port_believes_the_address_in_a_header() -> None:
    trusting = {name for name, each in SERVICES.items() if "SWEETSPOT_BEHIND_PROXY" in each.get("environment", {})}
    assert trusting == {"balanced-web"}
    assert SERVICES["balanced-web"]["ports"] == []


def test_certificates_renew_by_themselves() -> None:
    argv = SERVICES["renewal"]["command"]
    assert "--daily" in argv
    first = " ".join(argv[argv.index("/authority") :])
    assert first in SERVICES["certificates"]["command"][2]  # the same names, or each would replace the other's
    assert "kill -TERM $$" in (ROOT / "webapp/deploy/redis/start.sh").read_text()


def test_it_has_no_default_for_a_secret() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for variable, default in re.findall(r"\$\{(\w*(?:PASSWORD|SECRET)\w*)(:[-?])", text):
        assert default == ":?", variable


def test_it_keeps_to_what_two_generations_read() -> None:
    assert not set(REFUSED_BY_1_29) & COMPOSE.keys()
    for service in SERVICES.values():
        assert all("required" not in how for how in service.get("depends_on", {}).values())
        assert "start_interval" not in service.get("healthcheck", {})


def test_its_seccomp_profile_opens_io_uring_and_nothing_dangerous() -> None:
    assert SECCOMP["defaultAction"] == "SCMP_ACT_ERRNO"
    free = {name for rule in SECCOMP["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" and "args" not in rule
            for name in rule["names"]}  # fmt: skip
    assert {"io_uring_setup", "io_uring_enter", "io_uring_register", "read", "openat", "execve"} <= free
    dangerous = {
        "mount", "umount2", "pivot_root", "unshare", "setns", "ptrace", "bpf", "kexec_load", "init_module", "reboot",
        "finit_module", "perf_event_open", "keyctl", "add_key", "userfaultfd", "process_vm_writev", "clone", "clone3",
        "open_by_handle_at", "iopl", "ioperm", "swapon", "settimeofday", "clock_settime", "acct", "quotactl", "chroot",
    }  # fmt: skip
    assert not dangerous & free


def test_it_writes_secrets_once_and_for_the_owner_alone(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, 'webapp/deploy'); import compose, pathlib;"
        f"compose.write_environment(pathlib.Path({str(tmp_path / '.env')!r}))"
    )
    argv = [sys.executable, "-c", code]
    assert subprocess.run(argv, cwd=ROOT, check=False).returncode == 0
    first = (tmp_path / ".env").read_text()
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    values = [line.partition("=")[2] for line in first.splitlines() if "=" in line]
    assert len(set(values)) == 4
    assert all(len(value) == 64 for value in values)
    assert subprocess.run(argv, cwd=ROOT, capture_output=True, check=False).returncode != 0
    assert (tmp_path / ".env").read_text() == first


def test_the_plan_of_its_check_is_a_valid_plan() -> None:
    assert document_problems(import_plan(compose.PLAN)) == ()


def test_the_worker_trusts_the_policy_of_its_image_whatever_the_clones_umask() -> None:
    text = (ROOT / "worker" / "deploy" / "Dockerfile").read_text()
    assert text.index("COPY deploy/policy.container.toml") < text.index("chmod 644 /etc/sweetspot-worker/policy.toml")


def test_its_check_says_so_and_fails_where_there_is_no_engine(tmp_path: Path) -> None:
    argv = [sys.executable, "webapp/deploy/compose.py", "check"]
    nowhere = {"PATH": "/usr/bin:/bin", "DOCKER_HOST": f"unix://{tmp_path}/none.sock", "HOME": str(tmp_path)}
    done = subprocess.run(argv, cwd=ROOT, env=nowhere, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "NOT made" in done.stderr


@pytest.mark.parametrize(
    ("stage", "code"),
    [("payloads", "from dev.payload_types import main; main()"), ("docs", "import dev.docs.__main__")],
)
def test_a_stage_of_the_image_has_the_files_of_its_development_tool(stage: str, code: str, tmp_path: Path) -> None:
    """The folder gets what the stage copies, which .dockerignore must let through. The tool of the docs only starts."""
    text = (ROOT / "webapp/deploy/Dockerfile").read_text()
    (lines,) = re.findall(rf"^FROM python AS {stage}\n((?:.+\n)+)", text, re.M)
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for paths in re.findall(r"^COPY (.+)$", lines, re.M):
        *sources, target = paths.split()
        for source in sources:
            assert any(f"{source}/".startswith(f"{path}/") for path in sent), source
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, tmp_path / target)
            else:
                (tmp_path / target).mkdir(exist_ok=True)
                shutil.copy(ROOT / source, tmp_path / target)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={}, check=True)
    assert (tmp_path / ".build/payloads/bench.ts").is_file() == (stage == "payloads")
