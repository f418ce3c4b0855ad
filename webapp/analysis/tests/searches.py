"""A plan with a goal, and a host whose measurements come from a known surface."""

from math import log2

import msgspec

from webapp.hosts.models import Host
from webapp.plans.document import Part, PlanDocument
from webapp.plans.load import asked_iops, fio_workload
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, AttemptKind, Run, Trial
from webapp.runs.services import start_run
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, run_to_the_end, say

BUDGET = 32
DOCUMENT = PlanDocument(
    title="Sweet spot",
    common={"size": "64m", "runtime": "3", "pattern": "randread"},
    parts=(Part(name="main", factors={"block_size": "4k, 8k", "iodepth": "1..64 *2", "numjobs": "1, 2, 4"}),),
    repeats=1,
    goal="highest iops where latency_mean <= 1ms",
    budget=BUDGET,
)

LOADS = PlanDocument(
    title="Highest load", repeats=1, goal="highest iops where latency_mean <= 1ms", budget=40,
    common={"size": "64m", "runtime": "3", "pattern": "randread", "iodepth": "32"},
    parts=(Part(name="main", factors={"load": "10%..95% +5%"}),),
)  # fmt: skip


def depth(trial: Trial) -> int:
    return int(trial.point["iodepth"]) * int(trial.point["numjobs"])


def speed(trial: Trial) -> tuple[float, float]:
    """IOPS and mean latency in ns. The latency rises with the depth, and is 1 ms at 40 I/Os of 4 KiB."""
    larger = 2.0 if trial.point["block_size"] == 8192 else 1.0
    noise = 1 + 0.01 * (trial.index % 3 - 1)
    return 10_000 * (1 + log2(depth(trial))) / larger * noise, 25_000 * depth(trial) * larger * noise


def under_way(host: Host) -> Attempt:
    dispatch_host(host.pk)
    return Attempt.objects.select_related("trial").get(host=host, ended_at=None)


def measure(host: Host) -> Attempt:
    return measured(host, under_way(host))


def measured(host: Host, attempt: Attempt) -> Attempt:
    """The attempt after its end."""
    assert attempt.trial is not None
    iops, latency = speed(attempt.trial)
    (read,) = RESULT.directions
    direction = msgspec.structs.replace(read, iops=iops, latency_mean_ns=latency)
    run_to_the_end(host, attempt, result=msgspec.structs.replace(RESULT, directions=(direction,)))
    return attempt


def begun(host: Host, document: PlanDocument = DOCUMENT, seed: int = 7) -> Run:
    return start_run(version=a_version(document), targets=[a_target(host)], by=None, seed=seed)


def restored(host: Host) -> None:
    attempt = under_way(host)
    assert attempt.kind == AttemptKind.CLOSE_RUN
    say(host, attempt, (1, (ACCEPTED, DONE)))


def loaded(host: Host, most: float = 10_000, noise: float = 0.002) -> Attempt:
    """Measure the trial at the rate that its order asks for. It has 0.95 ms at 60 % of 10,000 IOPS."""
    attempt = under_way(host)
    assert attempt.trial is not None
    (work,) = map(fio_workload, attempt.trial.workloads)
    iops = asked_iops(work) or 10_000
    latency = 1e6 * iops * (1 + noise * (attempt.trial.index % 3)) / 6_330
    (read,) = RESULT.directions
    read = msgspec.structs.replace(read, iops=min(iops, most) if asked_iops(work) else iops, latency_mean_ns=latency)
    run_to_the_end(host, attempt, result=msgspec.structs.replace(RESULT, directions=(read,)))
    return attempt
