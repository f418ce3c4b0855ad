"""The factor `at_once`: which targets are used together, what is left out, and what is wrong with it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_part

from webapp.plans.document import Order
from webapp.plans.estimate import estimate
from webapp.plans.expand import Expansion, expand
from webapp.plans.expected_time import Experience, Span
from webapp.plans.fitness import TargetFacts
from webapp.plans.grids import document_problems
from webapp.plans.points import varying
from webapp.plans.preflight import destroys
from webapp.plans.tests.helpers import device, directory, document, part

MIB = 2**20


def drives(count: int, host: str = "a", **changes: object) -> list[TargetFacts]:
    return [
        device(id=f"{host}{n}", name=f"{host}/d{n}", path=f"/dev/d{n}", host_id=f"host-{host}", **changes)
        for n in range(count)
    ]


def expanded(
    levels: str, targets: list[TargetFacts], grid: Mapping[str, str] | None = None, *, repeats: int = 1
) -> Expansion:
    return expand(document(part("main", {"at_once": levels, **(grid or {})}), repeats=repeats), targets, seed=1)


def groups(made: Expansion) -> set[tuple[str, ...]]:
    return {trial.target_ids for trial in made.trials}


def test_rules_that_leave_out_large_groups_do_not_hide_trials_from_the_maximum() -> None:
    chosen = part("main", {"at_once": "1..8 +1", "iodepth": "1..1000 +1"})
    only_single = replace_part(chosen, rules=("only when at_once=1",))
    (problem,) = expand(document(only_single, repeats=2), drives(8), seed=1).problems
    assert problem.startswith("16,000 trials exceed")


def test_targets_of_a_host_are_taken_in_groups_as_they_were_chosen() -> None:
    second, first, *others = drives(4)
    made = expanded("1, 2, 4", [first, second, *others], repeats=2)
    assert made.problems == ()
    assert groups(made) == {("a0",), ("a1",), ("a2",), ("a3",), ("a1", "a0"), ("a2", "a3"), ("a1", "a0", "a2", "a3")}
    assert Counter(trial.point["at_once"] for trial in made.trials) == {1: 8, 2: 4, 4: 2}
    assert all(len(trial.target_ids) == trial.point["at_once"] for trial in made.trials)


def test_each_host_has_groups_of_its_own_and_each_kind_too() -> None:
    files = [directory(id=f"f{n}", name=f"a/f{n}", host_id="host-a") for n in range(2)]
    made = expanded("2", [*drives(2), *files, *drives(2, "b")])
    assert groups(made) == {("a0", "a1"), ("f0", "f1"), ("b0", "b1")}


def test_what_is_left_over_is_left_out_and_named() -> None:
    made = expanded("1, 2", drives(3))
    assert groups(made) == {("a0",), ("a1",), ("a2",), ("a0", "a1")}
    assert made.skipped == (
        "Part main with 2 targets at once does not use a/d2: 3 block devices of a are chosen, and 3 is not a "
        "multiple of 2.",
    )


def test_too_few_targets_are_a_problem() -> None:
    assert expanded("1, 4", drives(2)).problems == (
        "Part main: 4 targets at once are more than the 2 block devices that are chosen on a. Choose more targets, "
        "or remove the level.",
    )
    assert "the 1 block device that is chosen on b" in expanded("2", [*drives(2), *drives(1, "b")]).problems[0]


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("/dev/sda", "/dev/sda1", True),
        ("/dev/sda12", "/dev/sda", True),
        ("/dev/nvme0n1p2", "/dev/nvme0n1", True),
        ("/dev/nvme0n1", "/dev/nvme0n11", False),  # two namespaces
        ("/dev/sda1", "/dev/sda2", False),
        ("/dev/sda", "/dev/sdab", False),
        ("", "", False),  # not known
    ],
)
def test_a_disk_and_a_partition_of_it_are_not_used_at_once(one: str, other: str, clash: bool) -> None:
    first, second = drives(2)
    made = expanded("1, 2", [replace(first, opens=one), replace(second, opens=other)])
    assert bool(made.problems) is clash
    assert not clash or "cannot be used at once" in made.problems[0]
    assert expanded("1", [replace(first, opens=one), replace(second, opens=other)]).problems == ()


@pytest.mark.parametrize("levels", ["0", "17", "-1", "2.5", "two"])
def test_levels_are_whole_numbers_from_1_to_16(levels: str) -> None:
    assert expanded(levels, drives(2)).problems


def test_layouts_are_not_for_several_hosts() -> None:
    plan = document(part(hosts_at_once="2", layout="raid0 x2 chunk 64k"))
    (problem,) = document_problems(plan)
    assert problem.place == "parts.0.factors.hosts_at_once"
    assert "layout" in problem.message


def test_a_plan_that_does_not_name_it_has_the_points_that_it_had() -> None:
    (trial,) = expand(document(part(), repeats=1), drives(1), seed=1).trials
    assert trial.target_ids == ("a0",)
    assert "at_once" not in trial.point


def test_that_a_point_lacks_it_is_a_level_of_its_own() -> None:
    assert varying([{"block_size": 1}, {"block_size": 1, "at_once": 2}]) == ("at_once",)


def test_every_target_of_a_group_must_be_fit() -> None:
    first, second = drives(2)
    made = expanded("2", [first, replace(second, destroy=False)], {"pattern": "randwrite"})
    assert "overwrites a/d1" in made.problems[0]
    made = expanded("2", [first, replace(second, settings_allowed=())], {"scheduler": "none"})
    assert "may not be changed on a/d1" in made.problems[0]
    assert "settings of 16 targets" in expanded("16", drives(16), SETTINGS).problems[0]


SETTINGS = dict.fromkeys(
    (
        "nr_requests", "read_ahead_kb", "nomerges", "rq_affinity", "iostats", "add_random", "max_sectors_kb",
        "wbt_lat_usec", "rotational", "io_poll", "queue_depth", "vm.dirty_ratio", "vm.dirty_background_ratio",
    ),
    "1",
)  # fmt: skip


def test_only_as_many_trials_as_there_are_count_against_the_most() -> None:
    """10 targets, 900 points at each level: 9,000 + 900 and not 18,000."""
    made = expanded("1, 10", drives(10), {"block_size": "512..15360 +512", "iodepth": "1..30 +1"})
    assert made.problems == ()
    assert len(made.trials) == 9_900


def test_a_group_is_a_place_of_its_own_in_the_order() -> None:
    made = expanded("1, 2", drives(2), {"iodepth": "1, 2, 4, 8"})
    order = [trial.target_ids for trial in made.trials]
    assert len(set(order)) == 3
    assert all(order[n] == order[n - 1] or n % 4 == 0 for n in range(1, len(order)))
    listed = document(part(at_once="1, 2"), order=Order.LISTED, repeats=1)
    assert [t.target_ids for t in expand(listed, drives(2), seed=1).trials] == [("a0",), ("a1",), ("a0", "a1")]


def test_time_counts_once_and_bytes_for_every_stream() -> None:
    made = expanded("2", drives(2), {"pattern": "randwrite", "amount": "64M"})
    assert destroys(made.trials[0].workload, made.trials[0].kind)
    assert estimate(made).written_most == {"a0": 64 * MIB, "a1": 64 * MIB}
    timed = estimate(expanded("2", drives(2)))
    assert timed.trials == 1
    assert timed.seconds == pytest.approx(3.4)
    files = [directory(id=f"f{n}", name=f"a/f{n}", host_id="host-a") for n in range(2)]
    assert estimate(expanded("2", files)).space_bytes == 2 * 64 * MIB


def test_how_long_an_amount_takes_is_known_of_the_same_group_only() -> None:
    made = expanded("2", drives(2), {"amount": "64M"})
    work = made.trials[0].workload.rated()

    def seconds(*ids: str) -> tuple[float, int]:
        known = Experience(runs=1, turnover_s=Span(1, 1, 1), amounts={(ids, work): Span.of([32 * MIB])})
        found = estimate(made, {"host-a": known})
        return found.seconds, found.unknown_trials

    assert seconds("a0", "a1") == (1 + 2, 0)
    assert seconds("a0") == (1, 1)


def test_settings_are_told_for_every_target() -> None:
    made = estimate(expanded("2", drives(2), {"scheduler": "none"}))
    assert made.settings_changed == ("a/d0: I/O scheduler", "a/d1: I/O scheduler")
