"""Settings and placement as factors: from the text of a plan to what the order says."""

import pytest

from webapp.plans.document import Part
from webapp.plans.expand import expand
from webapp.plans.factors import by_cost
from webapp.plans.tests.helpers import device, document
from worker.contract.workload import CpusPolicy, FioWorkload, Placement, Stream, TargetRef
from worker.recipes import render


def part(**factors: str) -> Part:
    names = {name.replace("__", "."): text for name, text in factors.items()}
    return Part(name="a", factors={"pattern": "randread"} | names)


def test_a_tunable_is_only_in_points_of_its_scheduler() -> None:
    tried = part(scheduler="none, mq-deadline, bfq")
    tried.factors["mq-deadline.read_expire"] = "100, 500"
    made = expand(document(tried, repeats=1), [device()], seed=1)
    assert made.problems == ()
    assert sorted((t.settings["scheduler"], t.settings.get("mq-deadline.read_expire", "")) for t in made.trials) == [
        ("bfq", ""), ("mq-deadline", "100"), ("mq-deadline", "500"), ("none", "")
    ]  # fmt: skip


def test_a_tunable_alone_is_for_the_scheduler_that_the_host_has() -> None:
    made = expand(document(part(bfq__low_latency="0"), repeats=1), [device()], seed=1)
    assert [trial.settings for trial in made.trials] == [{"bfq.low_latency": "0"}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("read_ahead_kb", "read_ahead_sectors"),
        ("vm.dirty_ratio", "vm.dirty_bytes"),
        ("vm.dirty_background_ratio", "vm.dirty_background_bytes"),
        ("cpus", "numa_node"),
    ],
)
def test_it_refuses_two_names_of_one_thing(one: str, other: str) -> None:
    both = Part(name="a", factors={"pattern": "randread", one: "1", other: "2"})
    made = expand(document(both), [device()], seed=1)
    assert "exclude each other" in made.problems[0]


def test_it_says_what_the_policy_of_the_host_does_not_allow() -> None:
    narrow = device(host_settings_allowed=("vm.dirty_ratio",), settings_allowed=("scheduler",))
    plan = document(part(vm__dirty_bytes="1073741824", irq_affinity="spread", scheduler="none"))
    problems = expand(plan, [narrow], seed=1).problems
    assert len(problems) == 2
    assert "`irq_affinity` may not be changed on a/loop" in problems[0]
    assert "`vm.dirty_bytes` affects the whole host" in problems[1]
    allowed = device(host_settings_allowed=("vm.dirty_bytes",), settings_allowed=("scheduler", "irq_affinity"))
    assert expand(plan, [allowed], seed=1).problems == ()


def test_where_fio_runs_is_part_of_the_workload_and_of_the_point_where_the_plan_says_so() -> None:
    plan = document(part(nice="-5", ionice="be/2", cpus="0-1+3", cpus_policy="split"), repeats=1)
    (trial,) = expand(plan, [device()], seed=1).trials
    assert trial.settings == {}
    placed = Placement(nice=-5, ionice="be/2", cpus="0-1+3", cpus_policy=CpusPolicy.SPLIT)
    assert isinstance(trial.workload, FioWorkload)
    assert trial.workload.placement == placed
    target = TargetRef(id="a", kind=device().kind, path="/dev/loop9", stable_id="x", serial="S1")
    text = render(Stream(number=0, target=target, workload=trial.workload)).job_text
    for line in ("nice=-5", "prioclass=2", "prio=2", "cpus_allowed=0-1,3", "cpus_allowed_policy=split"):
        assert f"\n{line}\n" in text
    (plain,) = expand(document(part(), repeats=1), [device()], seed=1).trials
    assert not {"nice", "ionice", "cpus", "cpus_policy", "numa_node"} & set(plain.point)


def test_it_says_that_split_needs_processors() -> None:
    made = expand(document(part(cpus_policy="split"), repeats=1), [device()], seed=1)
    assert "cpus_policy split needs cpus" in made.problems[0]


def test_what_is_of_the_whole_host_changes_most_slowly() -> None:
    names = by_cost(["nomerges", "vm.dirty_ratio", "irq_affinity", "scheduler", "mq-deadline.fifo_batch", "block_size"])
    assert names[:3] == ("vm.dirty_ratio", "irq_affinity", "scheduler")
    assert names[-1] == "block_size"
