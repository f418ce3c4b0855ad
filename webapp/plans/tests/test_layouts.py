"""The factor `layout`: levels, what runs where, order, room, and what is shown before a start."""

from dataclasses import replace
from itertools import groupby

import pytest

from webapp.plans import levels
from webapp.plans.document import Order, Part, PartStream, export_plan, import_plan
from webapp.plans.estimate import estimate
from webapp.plans.expand import Expansion, expand
from webapp.plans.expected_time import Experience, Span
from webapp.plans.factors import FACTORS
from webapp.plans.fitness import TargetFacts
from webapp.plans.layouts import DriveFacts, layout_plan
from webapp.plans.tests.helpers import GIB, directory, document, part
from webapp.plans.tests.pools import pool
from worker.contract.workload import TargetKind
from worker.recipes.layouts.text import parse

LAYOUT = FACTORS["layout"]


def expanded(layout: str, *targets: TargetFacts, **given: object) -> Expansion:
    factors = {name: str(text) for name, text in given.items() if name not in ("repeats", "order", "sequence")}
    rules = {name: value for name, value in given.items() if name in ("repeats", "order", "sequence")}
    return expand(document(part(grid={"layout": layout, **factors}), **rules), targets or (pool(),), seed=3)


def test_its_levels_are_lines_and_each_may_be_a_sweep() -> None:
    found = levels.parse(LAYOUT, "raid0 x1..3 chunk 64K / xfs|ext4, single   share 80 %")
    assert found == (
        *(f"raid0 x{n} chunk 64k / {kind}" for n in (1, 2, 3) for kind in ("xfs", "ext4")), "single share 80%",
    )  # fmt: skip
    with pytest.raises(levels.LevelError, match="Layout: raid5 needs at least 3 drives"):
        levels.parse(LAYOUT, "raid5 x2 chunk 64k")


def test_it_is_carried_by_a_file() -> None:
    made = document(part(layout="single, raid0 x2 chunk 8k..16k *2 / xfs noatime"))
    assert import_plan(export_plan(made)) == made


def test_a_part_with_a_layout_runs_on_pools_and_other_parts_do_not() -> None:
    both = expanded("single / xfs", pool(), directory())
    assert {trial.target_id for trial in both.trials} == {"rack"}
    assert both.skipped == ("Part main runs on pools of drives only; a/scratch is a directory.",)
    plain = expand(document(part()), [pool()], seed=1)
    assert plain.skipped[0].endswith("a/rack is a pool of drives; a part with a `layout` does.")


def test_it_changes_slowest_in_every_repeat() -> None:
    made = expanded("single, raid0 x2 chunk 64k, raid1 x2", scheduler="none, kyber", iodepth="1, 8", repeats=3)
    assert made.problems == ()
    for block in (1, 2, 3):
        lines = [trial.point["layout"] for trial in made.trials if trial.block == block]
        assert len(list(groupby(lines))) == 3
    assert estimate(made).layouts_built in (7, 8, 9)  # blocks may meet in the same layout


def test_a_file_system_makes_it_a_directory() -> None:
    made = expanded("single, single / xfs", order=Order.LISTED, repeats=1)
    assert [trial.kind for trial in made.trials] == [TargetKind.BLOCK, TargetKind.DIRECTORY]
    (problem,) = expanded("single / xfs", size="whole").problems
    assert "size" in problem


def test_files_are_written_anew_on_every_layout() -> None:
    made = expanded("single / xfs, single / ext4", size="1G", repeats=2, order=Order.LISTED, pattern="randread")
    found = estimate(made)
    assert (found.layouts_built, found.bytes_written_max, found.space_bytes) == (4, 4 * GIB, 0)


def test_it_says_which_layout_is_too_large_for_the_pool() -> None:
    (problem,) = expanded("raid0 x4..5 chunk 64k").problems
    assert problem == "Part main: `raid0 x5 chunk 64k` takes 5 drives; the pool a/rack has 4."


def test_it_knows_the_room_on_each_layout() -> None:
    assert expanded("raid0 x2 chunk 64k / xfs", size="19G").problems == ()
    (problem,) = expanded("raid1 x2 / xfs", size="19G").problems
    assert problem == "Part main: 19 GiB are needed on a/rack, 10 GiB are there."


def test_a_layout_is_shown_with_its_commands_and_what_is_aligned() -> None:
    shown = layout_plan(parse("2 arrays of raid5 x3 chunk 64k / lvm stripe 64k"), "a/rack", pool(6).drives)
    assert [drive.name for drive in shown.drives] == [f"a/d{n}" for n in range(6)]
    assert shown.misaligned
    assert (shown.usable_bytes, shown.width_bytes) == (40 * GIB, 128 * 1024)
    assert shown.build[0].argv[-1] == "/dev/sdb"
    assert shown.take_down[-1].argv == ("partx", "--delete", "/dev/sdg")


def test_virtual_drives_are_made_of_slots_and_md_of_drives() -> None:
    slots = tuple(DriveFacts(f"a/s{n}", f"/storcli/0/252:{n}", 10 * GIB, TargetKind.SLOT) for n in range(4))
    made = expanded("vd raid0 x1..4 strip 64k..1M *2", pool(slots=slots))
    assert made.problems == ()
    assert len({trial.layouts[0] for trial in made.trials}) == 20
    (problem,) = expanded("raid0 x2 chunk 64k", pool(slots=slots)).problems
    assert "takes drives that the host sees; the pool a/rack has slots of a controller" in problem
    (problem,) = expanded("vd raid0 x2 strip 64k", pool(drives=4)).problems
    assert "takes slots of a controller" in problem


def test_it_counts_builds_by_what_they_took_before() -> None:
    made = expanded("single, raid1 x2", repeats=1)
    assert (estimate(made).layouts_built, estimate(made).unknown_builds) == (2, 2)
    known = Experience(runs=1, turnover_s=Span.of([0.4]), builds_s={"raid1 x2": Span.of([30, 40, 50])})
    learned = estimate(made, {pool().host_id: known})
    assert (learned.layouts_built, learned.unknown_builds) == (2, 1)
    assert learned.seconds - estimate(made).seconds == pytest.approx(40)
    assert learned.seconds_high - learned.seconds_low == pytest.approx(20)


def two_pools() -> tuple[TargetFacts, TargetFacts]:
    front, back = pool(), pool()
    drives = tuple(DriveFacts(f"a/e{n}", f"/dev/sd{'klmn'[n]}", 10 * GIB) for n in range(4))
    return front, replace(back, id="back", name="a/back", drives=drives)


def test_each_of_several_pools_at_once_has_the_layout() -> None:
    made = expanded("raid0 x2 chunk 64k / xfs", *two_pools(), at_once="2", size="1G", repeats=1)
    assert made.problems == ()
    (trial,) = made.trials
    assert trial.target_ids == ("rack", "back")
    cost = estimate(made)
    assert cost.layouts_built == 2
    assert cost.written_most.keys() == {"rack", "back"}


def test_each_named_stream_may_use_its_own_pool() -> None:
    streams = tuple(PartStream(name=name, factors={"pattern": name}) for name in ("read", "write"))
    both = Part(name="main", factors={"layout": "single / xfs", "streams_on": "each", "size": "1G"}, streams=streams)
    made = expand(document(both, repeats=1), two_pools(), seed=1)
    assert made.problems == ()
    assert [[stream.target_id for stream in trial.streams] for trial in made.trials] == [["rack", "back"]]


def test_pools_with_a_common_drive_are_not_used_at_once() -> None:
    front, back = two_pools()
    (problem,) = expanded("single / xfs", front, replace(back, drives=front.drives[3:]), at_once="2").problems
    assert "a/rack and a/back both contain a/d3, so the two cannot be used at once" in problem
    renamed = tuple(replace(drive, name=f"a/again{n}") for n, drive in enumerate(front.drives[3:]))
    assert expanded("single / xfs", front, replace(back, drives=renamed), at_once="2").problems == (problem,)


def test_a_host_keeps_only_the_layouts_of_its_last_trial() -> None:
    """The worker takes down every layout that a trial does not use."""
    made = expanded("single / xfs", *two_pools(), at_once="1, 2", repeats=1, order=Order.LISTED, size="1G")
    assert [trial.target_ids for trial in made.trials] == [("rack",), ("back",), ("rack", "back")]
    assert estimate(made).layouts_built == 3


def test_reflinks_on_a_file_system_without_them_are_a_problem_before_the_start() -> None:
    copying = {"engine": "file_copy", "copy_method": "reflink", "size": "1G"}
    ext4, xfs = (
        expand(document(Part(name="copy", factors=copying | {"layout": f"single / {system}"})), [pool()], seed=1)
        for system in ("ext4", "xfs")
    )
    assert any("ext4 has no reflinks" in problem for problem in ext4.problems), ext4
    assert xfs.problems == ()
