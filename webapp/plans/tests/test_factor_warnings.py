"""Each rule about factors without effect, and the places at which its warnings are shown."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from webapp.plans.document import Part
from webapp.plans.factor_warnings import RULES, factor_warnings
from webapp.plans.factors import FACTORS
from webapp.plans.fitness import TargetFacts
from webapp.plans.grids import FieldProblem
from webapp.plans.preview import preview
from webapp.plans.tests.helpers import device, directory, document, part
from webapp.tests.factories.hosts import a_host, an_inventory, storage1_drive
from worker.contract.workload import TargetKind

BLOCK = ("block",)
DIRECTORY = ("directory",)
BUFFERED = {"direct": "off"}
WRITES = {"pattern": "randwrite"}
READS_AND_WRITES = {"pattern": "randread, randwrite"}

# factor, its levels, other factors with which it has no effect, factors with which it has one, kinds of target
ROWS: list[tuple[str, str, Mapping[str, str], Mapping[str, str], tuple[str, ...]]] = [
    ("read_ahead_kb", "0, 128", {}, BUFFERED, BLOCK),
    ("read_ahead_kb", "0, 128", {}, {"direct": "on, off"}, DIRECTORY),
    ("read_ahead_sectors", "0, 256", {}, BUFFERED, BLOCK),
    ("vm.dirty_ratio", "10, 20", {}, BUFFERED | WRITES, BLOCK),
    ("vm.dirty_bytes", "1000000", BUFFERED, BUFFERED | READS_AND_WRITES, BLOCK),
    ("vm.dirty_background_ratio", "5", WRITES, BUFFERED | WRITES, BLOCK),
    ("vm.dirty_background_bytes", "5000", {}, BUFFERED | WRITES, BLOCK),
    ("vm.dirty_expire_centisecs", "100", {}, BUFFERED | WRITES, BLOCK),
    ("vm.dirty_writeback_centisecs", "100", {}, BUFFERED | WRITES, BLOCK),
    ("wbt_lat_usec", "0, 75000", BUFFERED, BUFFERED | WRITES, BLOCK),
    ("wbt_lat_usec", "0, 75000", WRITES, BUFFERED | WRITES, BLOCK),
    ("write_cache", "write back, write through", {}, WRITES, BLOCK),
    ("drive_write_cache", "write back, write through", {}, READS_AND_WRITES, BLOCK),
    ("nvme.write_cache", "0, 1", {}, {"pattern": "randrw"}, BLOCK),
    ("sync", "none, dsync", {}, WRITES, BLOCK),
    ("fsync_every", "1", {}, WRITES, BLOCK),
    ("end_fsync", "on", {}, WRITES, BLOCK),
    ("buffers", "zeroes", {}, WRITES, BLOCK),
    ("prefill", "on", {}, {"on": "directory"}, BLOCK),
    ("files", "1", {}, {"on": "directory"}, BLOCK),
    ("drop_caches", "on", {}, BUFFERED, BLOCK),
    ("bfq.low_latency", "0", {"scheduler": "none, mq-deadline"}, {"scheduler": "none, bfq"}, BLOCK),
    ("mq-deadline.fifo_batch", "1", {"scheduler": "kyber"}, {}, BLOCK),
    ("ionice", "idle", {"scheduler": "none, kyber"}, {"scheduler": "none, bfq"}, BLOCK),
    ("ionice", "be/0", {"scheduler": "none"}, {}, BLOCK),  # the host may have bfq
    ("sync_depth", "threads", {}, {"ioengine": "psync", "iodepth": "4"}, BLOCK),
    ("sync_depth", "threads", {"ioengine": "psync"}, {"ioengine": "io_uring, psync", "iodepth": "1, 4"}, BLOCK),
    ("io_poll", "0, 1", {}, {"hipri": "on"}, BLOCK),
    ("purge", "discard", {}, WRITES, BLOCK),
    ("purge", "discard", READS_AND_WRITES, {"purge": "none"}, BLOCK),
]  # fmt: skip


def warnings(factor: str, text: str, others: Mapping[str, str], on: tuple[str, ...]) -> tuple[FieldProblem, ...]:
    given = {"pattern": "randread", factor: text, **others}
    kinds = (given.pop("on"),) if "on" in given else on
    return tuple(one for one in factor_warnings(document(Part(name="main", on=kinds, factors=given))))


@pytest.mark.parametrize(("factor", "text", "pointless", "useful", "on"), ROWS)
def test_it_warns_only_if_the_factor_has_no_effect(
    factor: str, text: str, pointless: Mapping[str, str], useful: Mapping[str, str], on: tuple[str, ...]
) -> None:
    place = f"parts.0.factors.{factor}"
    (warning,) = [one for one in warnings(factor, text, pointless, on) if one.place == place]
    assert warning.message.startswith(FACTORS[factor].label)
    assert warning.message.endswith(".")
    assert [one for one in warnings(factor, text, useful, on) if one.place == place] == []


def test_every_rule_has_a_row_a_source_and_known_factors() -> None:
    tested = {row[0] for row in ROWS} | {"scheduler", "block_size"}
    for rule in RULES:
        assert rule.source
        assert tested & {*rule.factors}, rule.factors
        assert {*rule.factors} <= {*FACTORS}


def only(*targets: TargetFacts, schedulers: Mapping[str, tuple[str, ...]], levels: str = "none") -> list[str]:
    made = factor_warnings(document(part(scheduler=levels)), targets, schedulers)
    return [one.message for one in made]


def test_it_names_devices_without_another_scheduler() -> None:
    first, second = device(), replace(device(), id="other", name="a/nvme0")
    words = "I/O scheduler has no effect here: a/loop offers only the scheduler none."
    assert only(first, second, schedulers={"loop": ("none",), "other": ("none", "bfq")}) == [words]
    assert only(second, schedulers={"loop": ("none",), "other": ("none", "bfq")}) == []
    assert only(first, schedulers={}) == []  # not known


@pytest.mark.parametrize(("factor", "levels", "others"), [
    ("block_size", "512, 4k", {}),
    ("write_block_size", "6k", {"pattern": "randrw"}),
    ("block_split", "512/50:4k/50", {}),
    ("write_block_split", "512/50:4k/50", {"pattern": "randrw", "block_split": "4k/50:8k/50"}),
    ("block_range", "512-4k", {}),
    ("skip", "512", {"pattern": "read"}),
    ("offset", "512, 1M", {}),
    ("blockalign", "512", {}),
])  # fmt: skip
def test_it_warns_of_levels_that_are_not_whole_sectors(factor: str, levels: str, others: Mapping[str, str]) -> None:
    plan = document(part("main", {factor: levels, **others}))
    small, large = device(logical_block_bytes=512), device(id="large", name="a/large", logical_block_bytes=4096)
    place = [f"parts.0.factors.{factor}"]
    assert [one.place for one in factor_warnings(plan, [small, large])] == place
    assert factor_warnings(plan, [small]) == factor_warnings(plan, [device()]) == factor_warnings(plan) == ()
    buffered = document(part("main", {factor: levels, **others} | BUFFERED))
    assert factor_warnings(buffered, [large]) == ()
    assert [one.place for one in factor_warnings(plan, [directory(logical_block_bytes=4096)])] == place


def test_a_part_uses_only_the_chosen_targets() -> None:
    both = document(part(prefill="on"))
    assert factor_warnings(both) == factor_warnings(both, [directory(), device()]) == ()
    assert [one.place for one in factor_warnings(both, [device()])] == ["parts.0.factors.prefill"]


@pytest.mark.parametrize(
    ("factor", "levels"), [("drop_caches", "on, off"), ("read_ahead_kb", "0, 128"), ("vm.dirty_ratio", "10, 20")]
)
def test_direct_io_on_a_loop_device_uses_the_page_cache_of_its_file(factor: str, levels: str) -> None:
    plan = document(part("main", {"pattern": "randrw", factor: levels}))
    drive, loop = device(), replace(device(), stable_id="loop:/srv/image")
    assert [one.place for one in factor_warnings(plan, [drive])] == [f"parts.0.factors.{factor}"]
    assert factor_warnings(plan, [loop]) == factor_warnings(plan, [drive, loop]) == ()


@pytest.mark.parametrize(("layout", "warned"), [
    ("single / ext4", 1), ("single / ext4 data=journal", 0), ("single / btrfs", 0), ("single / f2fs", 0),
])  # fmt: skip
def test_some_file_systems_buffer_direct_io(layout: str, warned: int) -> None:
    plan = document(part(layout=layout, read_ahead_kb="0, 128"))
    assert len(factor_warnings(plan, [replace(device(), kind=TargetKind.POOL)])) == warned


@pytest.mark.parametrize("factor", ["vm.dirty_writeback_centisecs", "wbt_lat_usec"])
def test_direct_writes_to_files_leave_dirty_metadata(factor: str) -> None:
    def found(pattern: str) -> int:
        return len(factor_warnings(document(part("main", {"pattern": pattern, factor: "0, 100"}, on=DIRECTORY))))

    assert (found("randread"), found("randwrite")) == (1, 0)


def test_a_common_factor_without_effect_in_all_parts_has_one_warning() -> None:
    common = {"size": "64M", "runtime": "3s", "read_ahead_kb": "0, 128"}
    everywhere = document(part("one"), part("two"), common=common)
    assert [(one.place, one.part) for one in factor_warnings(everywhere)] == [("common.read_ahead_kb", "")]
    in_one = document(part("one"), part("two", BUFFERED), common=common)
    assert [(one.place, one.part) for one in factor_warnings(in_one)] == [("parts.0", "one")]
    one_level = document(part("one"), part("two", BUFFERED), common=common | {"read_ahead_kb": "0"})
    assert factor_warnings(one_level) == ()  # it costs part one nothing, and part two needs it
    overridden = document(part("one", read_ahead_kb="4"), part("two", BUFFERED), common=common)
    assert [one.place for one in factor_warnings(overridden)] == ["parts.0.factors.read_ahead_kb"]


def test_a_part_with_problems_has_no_warnings() -> None:
    assert factor_warnings(document(part(read_ahead_kb="0, much"))) == ()


def test_direct_copies_count_as_direct_io() -> None:
    def copy(method: str) -> Part:
        given = {"engine": "file_copy", "copy_method": method, "size": "1G", "read_ahead_kb": "0, 128"}
        return Part(name="copy", on=("directory",), factors=given)

    assert [one.place for one in factor_warnings(document(copy("direct"), common={}))] == [
        "parts.0.factors.read_ahead_kb"
    ]
    assert factor_warnings(document(copy("buffered"), common={})) == ()


def test_a_layout_with_a_file_system_is_a_directory() -> None:
    purged = {"layout": "single / xfs", "purge": "discard", "prefill": "on"}
    pool = replace(device(), kind=TargetKind.POOL)
    assert factor_warnings(document(part("p", purged)), [pool]) == ()
    on_device = purged | {"layout": "single"}
    assert len(factor_warnings(document(part("p", on_device)), [pool])) == 2


@pytest.mark.django_db
def test_a_preview_has_the_warnings_of_factors_and_targets() -> None:
    host = a_host("storage1")
    an_inventory(host)
    words = "nvme0n1 was purged and not written since."
    drive = storage1_drive(host, warnings=[words])
    made = preview(document(part(read_ahead_kb="0, 128", scheduler="none")), [drive])
    assert made.target_warnings == (f"storage1/nvme0: {words}",)
    assert [one.place for one in made.factor_warnings] == ["parts.0.factors.read_ahead_kb"]
