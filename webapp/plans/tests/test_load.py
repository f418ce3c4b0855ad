"""The factor `load`: its levels, the order of its trials, the workload of a share, and what it refuses."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from webapp.core.errors import Refusal
from webapp.plans.document import Part, PartStream, PlanDocument, export_plan, import_plan
from webapp.plans.expand import PlannedTrial, expand
from webapp.plans.grids import document_problems
from webapp.plans.jobfile.writer import write_job_file
from webapp.plans.load import MAX, MAX_JOBS, MORE_JOBS, RAMP_S, asked_iops, fio_workload, is_share, open_loop
from webapp.plans.load_points import at_maximum, shares_of
from webapp.plans.points import point_key
from webapp.plans.tests.helpers import device, document
from webapp.plans.values import Value
from worker.contract.fio_options import RateProcess
from worker.contract.workload import FioWorkload, IoEngine, Pattern, SyncDepth, TargetKind
from worker.recipes.fio.problems import problems

LOADS = {"pattern": "randread", "iodepth": "4, 32", "load": "10%, 50%, 90%"}


def plan(factors: dict[str, str] | None = None, **given: object) -> PlanDocument:
    rules = given.pop("rules", ())
    return document(Part(name="Loads", factors=LOADS | (factors or {}), rules=rules), **given)  # type: ignore[arg-type]


def refused(made: PlanDocument) -> list[str]:
    return [problem.place.rpartition(".")[2] for problem in document_problems(made)]


def test_the_maximum_is_added_and_is_measured_before_all_shares() -> None:
    trials = expand(plan(repeats=3), [device()], seed=1).trials
    shares = [is_share(trial.point) for trial in trials]
    assert shares == [False] * 6 + [True] * 18
    assert {trial.point["load"] for trial in trials} == {10, 50, 90, MAX}
    assert [trial.index for trial in trials] == list(range(24))
    assert [trial.point["load"] for trial in trials[6:12]] != sorted(trial.point["load"] for trial in trials[6:12])  # type: ignore[type-var]


def test_a_share_has_a_ramp_and_the_maximum_is_the_ordinary_job() -> None:
    by_load = {trial.point["load"]: trial.workload for trial in expand(plan(), [device()], seed=1).trials}
    ramps = {load: work.ramp_s for load, work in by_load.items() if isinstance(work, FioWorkload)}
    assert ramps == {10: RAMP_S, 50: RAMP_S, 90: RAMP_S, MAX: 0}


def test_the_text_is_kept_in_yaml_and_job_files_are_refused() -> None:
    made = plan()
    assert import_plan(export_plan(made)) == made
    with pytest.raises(Refusal) as refusal:
        write_job_file(made)
    assert refusal.value.code == "not_fio"


@pytest.mark.parametrize(
    ("factors", "place"),
    [
        ({"pattern": "read"}, "load"),
        ({"pattern": "randread, randtrim"}, "load"),
        ({"rate_iops": "100"}, "rate_iops"),
        ({"rate": "1M"}, "rate"),
        ({"thinktime": "1ms"}, "thinktime"),
        ({"latency_target": "1ms"}, "latency_target"),
        ({"io_submit_mode": "offload"}, "io_submit_mode"),
        ({"amount": "1G"}, "amount"),
        ({"stop": "confidence 2%"}, "stop"),
        ({"block_split": "4k/50:8k/50"}, "block_split"),
        ({"sqthread_poll": "off, on"}, "sqthread_poll"),
        ({"at_once": "1, 2"}, "at_once"),
        ({"offset_increment": "1G"}, "offset_increment"),
        ({"engine": "pgbench"}, "load"),
        ({"load": "0%"}, "load"),
        ({"load": "110%"}, "load"),
    ],
)
def test_what_would_change_the_arrivals_is_refused(factors: dict[str, str], place: str) -> None:
    assert place in refused(plan(factors))


def test_what_would_leave_out_trials_is_refused() -> None:
    assert refused(plan(spread_percent=5)) == ["load"]
    assert refused(plan(decide_percent=5)) == ["load"]
    assert refused(plan(rules=("except iodepth=4;load=max",))) == ["load"]


ONLY_LOADS = {"iodepth": "32", "load": "10%..95% +5%"}


def test_a_search_over_loads_has_a_limit_of_latency_and_no_other_factor() -> None:
    goal = "highest iops where latency_p99 <= 1ms"
    assert refused(plan(ONLY_LOADS, repeats=1, goal=goal)) == []
    assert refused(plan(ONLY_LOADS, repeats=1, goal=goal.replace("p99", "p999"), budget=40)) == []
    assert refused(plan(repeats=1, goal=goal)) == ["goal"]  # two queue depths
    for other in ("highest iops", "lowest latency_p99 where iops >= 1k", "highest iops where bytes_per_s <= 1GB/s"):
        assert refused(plan(ONLY_LOADS, repeats=1, goal=other)) == ["goal"]
    assert refused(plan(ONLY_LOADS, repeats=1, goal=goal, budget_s=600)) == ["budget"]


def streams(**given: str) -> PlanDocument:
    reader = PartStream(name="reader", factors={"pattern": "randread", "load": "25%, 50%"})
    writer = PartStream(name="writer", factors={"pattern": "randwrite", "load": "10%, 50%, 90%"})
    return document(Part(name="Map", factors=given, streams=(reader, writer)), repeats=1)


def loads(trials: Iterable[PlannedTrial]) -> list[tuple[Value, ...]]:
    return [tuple(trial.point.get(f"{name}.load") for name in ("reader", "writer")) for trial in trials]


def test_streams_have_loads_of_their_own_after_the_maximum_of_each_alone() -> None:
    trials = expand(streams(), [device()], seed=1).trials
    assert set(loads(trials[:2])) == {(MAX, None), (None, MAX)}
    assert sorted(loads(trials[2:])) == [(read, write) for read in (25, 50) for write in (10, 50, 90)]
    alone = expand(streams(streams="alone, together"), [device()], seed=1).trials
    assert set(loads(alone)) - set(loads(trials)) == {(25, None), (50, None), (None, 10), (None, 50), (None, 90)}
    assert len(alone) == len(trials) + 5


def test_each_stream_refers_to_its_maximum_alone() -> None:
    trials = expand(streams(), [device()], seed=1).trials
    keys = {trial.point_key for trial in trials[:2]}
    for trial in trials[2:]:
        shares = list(shares_of(trial.point))
        assert [(number, name) for number, name, _ in shares] == [(0, "reader"), (1, "writer")]
        assert {point_key(at_maximum(trial.point, name)) for _, name, _ in shares} == keys
        assert [fio_workload(work).ramp_s for work in trial.workloads] == [RAMP_S, RAMP_S]


@pytest.mark.parametrize(
    ("factors", "place"),
    [
        ({"pattern": "write"}, "b.load"),
        ({"rate_iops": "100"}, "b.rate_iops"),
        ({"load": "0%"}, "b.load"),
        ({"load": "max"}, "b.load"),
    ],
)
def test_a_stream_refuses_what_a_part_does(factors: dict[str, str], place: str) -> None:
    first = PartStream(name="a", factors={"pattern": "randread", "load": "10%"})
    second = PartStream(name="b", factors={"pattern": "randwrite", "load": "10%"} | factors)
    problems = document_problems(document(Part(name="Two", factors={}, streams=(first, second))))
    assert place in {problem.place.partition("streams.")[2] for problem in problems}


def test_a_load_of_the_whole_part_is_refused_beside_streams() -> None:
    both = (
        PartStream(name="a", factors={"pattern": "randread"}),
        PartStream(name="b", factors={"pattern": "randwrite"}),
    )
    assert refused(document(Part(name="Two", factors={"load": "10%"}, streams=both))) == ["load"]


WORK = FioWorkload(pattern=Pattern.RANDREAD, iodepth=32, runtime_s=10, size_bytes=2**26, seed=1)


@pytest.mark.parametrize("most", [40, 150, 5_000, 43_210, 812_345])
@pytest.mark.parametrize("percent", [10, 50, 95])
def test_the_rates_of_all_jobs_are_the_share(most: float, percent: int) -> None:
    work = open_loop(WORK, percent, [most])
    assert work is not None
    wanted = most * percent / 100
    assert asked_iops(work) == pytest.approx(wanted, rel=0.01, abs=0.5)
    assert (work.iodepth, work.options.rate_process) == (1, RateProcess.POISSON)
    assert work.numjobs <= MAX_JOBS * MORE_JOBS
    assert not problems(work, TargetKind.BLOCK)


def test_repeats_and_shares_draw_other_arrivals_from_large_seeds() -> None:
    works = [open_loop(replace(WORK, seed=seed), percent, [5_000]) for seed in (1, 2, 3) for percent in (50, 90)]
    seeds = {work.seed for work in works if work}
    assert len(seeds) == 6
    assert min(seeds) > 2**16
    assert open_loop(WORK, 50, [5_000]) == works[0]


def test_each_direction_of_a_mix_has_its_share() -> None:
    mix = replace(WORK, pattern=Pattern.RANDRW, read_percent=70)
    work = open_loop(mix, 50, [7_000, 3_000])
    assert work is not None
    assert work.numjobs * (work.options.rate_iops or 0) == pytest.approx(3_500, rel=0.02)
    assert work.numjobs * (work.options.write_rate_iops or 0) == pytest.approx(1_500, rel=0.02)
    assert not problems(work, TargetKind.BLOCK)


def test_threads_of_an_engine_without_a_queue_have_depth_one() -> None:
    threads = replace(WORK, ioengine=IoEngine.PSYNC, sync_depth=SyncDepth.THREADS)
    work = open_loop(threads, 90, [5_000])
    assert work is not None
    assert work.threads == work.numjobs


def test_a_share_below_one_io_per_second_is_none() -> None:
    assert open_loop(WORK, 10, [9.9]) is None
    assert open_loop(WORK, 10, [1_000, 5]) is None
