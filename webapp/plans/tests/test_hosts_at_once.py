"""Hosts at once: groups of one target of each of several hosts."""

from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.estimate import estimate
from webapp.plans.expand import Expansion, TargetFacts, expand
from webapp.plans.expected_time import COMMON_START_S, OVERHEAD_S, PREFILL_BYTES_PER_S
from webapp.plans.tests.helpers import device, directory


def on_host(host: str, name: str = "d") -> TargetFacts:
    return directory(id=f"{host}/{name}", host_id=host, name=f"{host}/{name}", path=f"/srv/{host}/{name}")


STEPS = "pause 5s; write 200M sequential 128k"
A, B, C = on_host("a"), on_host("b"), on_host("c")


def expanded(*targets: TargetFacts, **factors: str) -> Expansion:
    given = {"pattern": "randread", "size": "1G", "runtime": "10s"} | factors
    document = PlanDocument(title="t", parts=(Part(name="p", factors=given),), repeats=1, order=Order.LISTED)
    return expand(document, targets, seed=1)


def groups(found: Expansion) -> list[tuple[str, ...]]:
    return [trial.target_ids for trial in found.trials]


def test_it_groups_one_target_of_each_host() -> None:
    found = expanded(A, B, C, hosts_at_once="1, 3")
    assert groups(found) == [("a/d",), ("b/d",), ("c/d",), ("a/d", "b/d", "c/d")]
    assert not found.problems


def test_first_targets_come_together_and_then_second_ones() -> None:
    others = [on_host("a", "e"), on_host("b", "e")]
    assert groups(expanded(A, B, *others, hosts_at_once="2")) == [("a/d", "b/d"), ("a/e", "b/e")]


def test_hosts_that_do_not_fill_a_group_are_left_out_by_name() -> None:
    found = expanded(A, B, C, hosts_at_once="2")
    assert groups(found) == [("a/d", "b/d")]
    assert "2 hosts at once does not use c/d" in found.skipped[0]


def test_more_hosts_than_are_chosen_are_a_problem() -> None:
    found = expanded(A, on_host("a", "e"), hosts_at_once="1, 2")
    assert "2 hosts at once are more than the 1 host" in found.problems[0]


def test_targets_of_two_kinds_are_not_in_one_group() -> None:
    found = expanded(A, device(id="b/x", host_id="b", name="b/x"), hosts_at_once="2")
    assert len(found.problems) == 2


def test_what_cannot_be_combined_is_a_problem() -> None:
    for factors, words in (
        ({"at_once": "2"}, "one target of several hosts"),
        ({"stop": "confidence 5%"}, "no host knows the I/Os of all hosts"),
        ({"engine": "idle"}, "only fio"),
        ({"layout": "single / xfs"}, "a layout is built on pools of one host"),
    ):
        assert any(words in problem for problem in expanded(A, B, hosts_at_once="2", **factors).problems), factors


def test_each_host_does_the_steps_and_they_count_once_in_the_time() -> None:
    steps, without = (
        estimate(expanded(A, B, hosts_at_once="2", prefill="false", before=before)) for before in (STEPS, "none")
    )
    assert steps.written_most == {"a/d": 200 * 2**20, "b/d": 200 * 2**20}
    assert round(steps.seconds - without.seconds, 3) == round(5 + 200 * 2**20 / PREFILL_BYTES_PER_S, 3)


def test_steps_that_are_done_once_need_one_number_of_hosts() -> None:
    (problem,) = expanded(A, B, hosts_at_once="1, 2", before="once pause 5s").problems
    assert "`hosts_at_once` must have one level" in problem


def test_the_hosts_of_a_trial_use_different_random_offsets() -> None:
    alone, _, together = expanded(A, B, hosts_at_once="1, 2").trials
    first, second = (stream.workload.seed for stream in together.streams)
    assert first == alone.streams[0].workload.seed != second


def test_trials_never_overlap_so_their_times_add_up() -> None:
    alone, together = 10 + OVERHEAD_S, 10 + OVERHEAD_S + COMMON_START_S
    found = estimate(expanded(A, B, hosts_at_once="1, 2", prefill="false"))
    assert round(found.seconds, 3) == round(2 * alone + together, 3)
    assert round(estimate(expanded(A, B, prefill="false")).seconds, 3) == round(alone, 3)
