"""Measures how closely several hosts begin one trial: real workers, each in a network namespace of its own.

    python -m dev.bench.common_start [--hosts 3] [--trials 20] [--seconds 2] [--json]

The skew is the time between the first and the last host's begin of I/O, by the server's clock, as the trial's page
shows it. The web tier runs in a private network namespace; the hosts reach it over a bridge.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dev.bench.figures import Figure, figure, show
from dev.console import ToolError, run_command, step
from dev.demo import start
from dev.faults.network import BRIDGE, SERVER_ADDRESS, Network
from dev.stack import lifecycle, redis_server, services
from dev.stack.network import LOOPBACK, await_condition
from dev.stack.policy import PolicyTarget, policy_text
from dev.stack.state import State, default_state

if TYPE_CHECKING:
    from webapp.hosts.models import Target

WANTED_SKEW_MS = 20.0
INSIDE = "SWEETSPOT_BENCH_NAMESPACE"
FACTORS = {"pattern": "randread", "block_size": "4k", "iodepth": "4", "size": "16M", "direct": "false"}
NAT = ("iptables", "-t", "nat", "-A")


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 if the largest skew exceeds its limit."""
    parser = argparse.ArgumentParser(
        prog="python -m dev.bench.common_start", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON too")
    options = parser.parse_args(arguments)
    if os.getuid() != 0:
        raise ToolError("Network namespaces require root.")
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        again = [sys.executable, "-m", "dev.bench.common_start", *arguments]
        return subprocess.run(["unshare", "--net", *again], check=False).returncode
    state = default_state("common-start")
    network = Network(options.hosts)
    try:
        start.bring_up(state)
        with _workers(state, network, options.hosts) as targets:
            figures = _measure(targets, options.trials, options.seconds)
    finally:
        with step("removing the measurement's processes and data"):
            lifecycle.remove(state)
            network.close()
    return show(figures, as_json=options.json)


@contextmanager
def _workers(state: State, network: Network, hosts: int) -> Iterator[list["Target"]]:
    """Their scratch directories, as targets."""
    ports = state.read_facts("ports.json")
    _redirect([ports[services.WEB], ports[redis_server.NAME]], network, hosts)
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(hosts):
            started.append(_worker(state, network, number))
        yield [_target(f"client{number}") for number in range(hosts)]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


def _redirect(ports: Sequence[int], network: Network, hosts: int) -> None:
    """Loopback in a host's namespace leads to loopback in this one: workers use plain HTTP on loopback only."""
    Path(f"/proc/sys/net/ipv4/conf/{BRIDGE}/route_localnet").write_text("1")
    for port in map(str, ports):
        match = ("-p", "tcp", "--dport", port, "-j", "DNAT", "--to")
        subprocess.run([*NAT, "PREROUTING", "-d", SERVER_ADDRESS, *match, f"{LOOPBACK}:{port}"], check=True)
        for host in range(hosts):
            inside = network.inside(host, [*NAT, "OUTPUT", "-d", LOOPBACK, *match, f"{SERVER_ADDRESS}:{port}"])
            subprocess.run(inside, check=True)
    for host in range(hosts):
        allow = network.inside(host, ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/eth0/route_localnet"])
        subprocess.run(allow, check=True)
        subprocess.run(network.inside(host, [*NAT, "POSTROUTING", "-o", "eth0", "-j", "MASQUERADE"]), check=True)


def _worker(state: State, network: Network, number: int) -> "subprocess.Popen[bytes]":
    from webapp.hosts.services import issue_enrolment_token

    name, folder = f"client{number}", state.root / f"client{number}"
    scratch, policy = state.root / f"scratch{number}", state.root / f"client{number}.toml"
    scratch.mkdir(mode=0o700)
    policy.write_text(policy_text([PolicyTarget(id="scratch", kind="directory", path=str(scratch))]))
    policy.chmod(0o600)
    command = (sys.executable, "-m", "worker", "--state", str(folder), "--policy", str(policy))
    token = issue_enrolment_token(by=None, slug=name)
    enrol = (*command, "enrol", "--server", services.public_url(state), "--token", token)
    subprocess.run(network.inside(number, enrol), check=True, capture_output=True)
    log = (state.root / f"{name}.log").open("ab")
    return subprocess.Popen(network.inside(number, (*command, "start")), stdout=log, stderr=log)


def _target(host: str) -> "Target":
    from webapp.hosts.models import Target

    found = Target.objects.filter(host__slug=host, slug="scratch", host__capabilities__engines__isnull=False)
    if not await_condition(found.exists, limit_s=60):
        raise ToolError(f"The worker of {host} did not register.")
    return found.get()


def _measure(targets: Sequence["Target"], trials: int, seconds: int) -> list[Figure]:
    from dev.bench import runs
    from webapp.plans.document import Part, PlanDocument
    from webapp.plans.services import create_plan
    from webapp.results.models import Result
    from webapp.results.reading.rows import read_rows
    from webapp.results.reading.trial_streams import HostsStart, trial_streams
    from webapp.runs.services import start_run

    factors = {**FACTORS, "runtime": f"{seconds}s", "hosts_at_once": str(len(targets))}
    document = PlanDocument(title="Common start", parts=(Part(name="main", factors=factors),), repeats=trials)
    with step(f"{trials} trials of {seconds} s on {len(targets)} hosts"):
        run = start_run(version=create_plan(document=document, by=None).versions.get(), targets=targets, by=None)
        began = time.monotonic()
        while runs.is_open(run) and time.monotonic() < began + 60 * trials:
            time.sleep(runs.POLL_S)
        runs.require_done(run)
    found: list[HostsStart] = []
    for trial in run.trials.order_by("index"):
        streams = trial_streams(trial, read_rows(Result.objects.filter(trial=trial)))
        assert streams
        assert streams.start
        found.append(streams.start)
    skews = [start.skew_ms for start in found]
    errors = [start.uncertainty_ms for start in found]
    return [
        figure("skew of the begins of I/O", "ms", skews, f"< {WANTED_SKEW_MS:g}", met=max(skews) < WANTED_SKEW_MS),
        figure(
            "largest error of a host's clock reading",
            "ms",
            errors,
            f"< {WANTED_SKEW_MS:g}",
            met=max(errors) < WANTED_SKEW_MS,
        ),
    ]


if __name__ == "__main__":
    run_command(main)
