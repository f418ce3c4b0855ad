import pytest

from webapp.analysis.answer import DifferenceKind
from webapp.analysis.comparing import compare
from webapp.analysis.question import CompareQuery
from webapp.analysis.tests.measuring import ENGINES
from webapp.plans.points import point_key
from webapp.results.models import Result, StreamRun
from webapp.results.reading.rows import read_rows
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.results import FACTS, Lab

pytestmark = pytest.mark.django_db


def test_a_point_with_several_levels_of_a_factor_has_no_value(lab: Lab) -> None:
    for engine in ("io_uring", "psync"):
        lab.measure(10.0, 11.0, ioengine=engine, numjobs=1)
        lab.measure(40.0, 41.0, ioengine=engine, numjobs=4)
    lab.measure(70.0, 71.0, iodepth=32)
    made = compare(ENGINES)
    (mixture,) = made.mixtures
    assert (mixture.name, mixture.points, [level.key for level in mixture.levels]) == ("numjobs", 2, ["1", "4"])
    assert [(level.text, series.name) for level in made.levels for series in made.panels[0].series] == [
        ("32", "io_uring")
    ]
    assert not any("not measured" in note for note in made.notes)


def test_reads_and_writes_of_one_mix_are_not_averaged_silently(lab: Lab) -> None:
    lab.measure(10.0, 11.0, pattern="randrw", read_percent=70)
    lab.measure(4.0, 5.0, pattern="randrw", read_percent=70, direction="write")
    assert [d.name for d in compare(ENGINES).differs] == ["direction"]


def test_that_one_pattern_reads_and_the_other_writes_follows_from_comparing_patterns(lab: Lab) -> None:
    lab.measure(10.0, 11.0, pattern="randread")
    lab.measure(4.0, 5.0, pattern="randwrite", direction="write")
    patterns = CompareQuery("iodepth", ("pattern",))
    made = compare(patterns)
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.FOLLOWS, "direction")]
    assert made.differs[0].text.endswith("it follows from Pattern.")
    assert made.single_factor
    lab.measure(7.0, 8.0, pattern="randrw", read_percent=50, iodepth=1)
    lab.measure(5.0, 6.0, pattern="randrw", read_percent=50, iodepth=64, direction="write")
    assert (DifferenceKind.CONFOUNDED, "direction") in {(d.kind, d.name) for d in compare(patterns).differs}


def test_a_factor_without_effect_in_one_series_is_no_confounder(lab: Lab) -> None:
    lab.measure(10.0, 11.0, pattern="randread")
    lab.measure(4.0, 5.0, pattern="randrw", read_percent=70)
    patterns = CompareQuery("iodepth", ("pattern",))
    assert "read_percent" not in {d.name for d in compare(patterns).differs}
    lab.measure(7.0, 8.0, pattern="readwrite", read_percent=30)
    assert "(randrw: 70 %; readwrite: 30 %)" in next(
        d.text for d in compare(patterns).differs if d.name == "read_percent"
    )


def test_what_replaces_a_depth_is_a_difference_only_where_it_replaces_one(lab: Lab) -> None:
    lab.measure(10.0, 11.0, ioengine="psync", iodepth=1, sync_depth="threads")
    lab.measure(4.0, 5.0, ioengine="io_uring", iodepth=1, sync_depth="refuse")
    assert compare(ENGINES).single_factor
    lab.measure(10.0, 11.0, ioengine="psync", iodepth=8, sync_depth="threads")
    lab.measure(4.0, 5.0, ioengine="psync", iodepth=16, sync_depth="refuse")
    assert "sync_depth" in {d.name for d in compare(ENGINES).differs}


def test_the_mount_point_of_a_layout_is_no_difference(lab: Lab) -> None:
    lab.measure(10.0, 11.0, facts=FACTS | {"stream.0.file_system.mount": "/state/layouts/k3v9"})
    lab.measure(40.0, 41.0, ioengine="psync", facts=FACTS | {"stream.0.file_system.mount": "/state/layouts/a1b2"})
    assert compare(ENGINES).single_factor


def test_a_fact_that_differs_between_series_is_a_confounder(lab: Lab) -> None:
    lab.measure(10.0, 11.0, numjobs=1)
    lab.measure(40.0, 41.0, ioengine="psync", numjobs=4, facts=FACTS | {"kernel.release": "6.18.0"}, fio="fio-3.36")
    made = compare(ENGINES)
    assert {d.name: d.kind for d in made.differs} == dict.fromkeys(
        ("numjobs", "kernel.release", "engine version"), DifferenceKind.CONFOUNDED
    )
    assert made.verdict == "Confounded by Jobs, Kernel, engine version."
    assert "(io_uring: 6.1.0; psync: 6.18.0)" in next(d.text for d in made.differs if d.name == "kernel.release")


def test_the_compared_setting_as_observed_does_not_confound(lab: Lab) -> None:
    lab.measure(10.0, 11.0, scheduler="none")
    lab.measure(20.0, 21.0, scheduler="mq-deadline", facts=FACTS | {"device.scheduler": "mq-deadline"})
    made = compare(CompareQuery("iodepth", ("scheduler",)))
    assert made.differs == ()
    assert made.single_factor


def test_a_setting_that_the_kernel_changes_with_the_compared_one_is_reported_but_no_confounder(lab: Lab) -> None:
    lab.measure(10.0, 11.0, scheduler="none", facts=FACTS | {"device.loop0.nr_requests": "128"})
    lab.measure(20.0, 21.0, scheduler="bfq", facts=FACTS | {"device.loop0.nr_requests": "256"})
    made = compare(CompareQuery("iodepth", ("scheduler",)))
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.FOLLOWS, "device.nr_requests")]
    assert made.differs[0].text == (
        "Queue size differs between series (bfq: 256; I/O scheduler none: 128): it follows from I/O scheduler."
    )
    assert made.single_factor
    made = compare(CompareQuery("scheduler"))
    assert made.differs[0].kind is DifferenceKind.ALONG_X


def test_a_controller_does_not_follow_from_a_compared_layout(lab: Lab) -> None:
    for line, controller in (("single / xfs", "HBA"), ("2 drives / btrfs", "RAID card")):
        lab.measure(
            10.0, 11.0, layout=line, facts=FACTS | {"device.loop0.controller.model": controller, "layout": line}
        )
    made = compare(CompareQuery("iodepth", ("layout",)))
    kinds = {one.name: one.kind for one in made.differs}
    assert kinds["device.controller.model"] is DifferenceKind.CONFOUNDED
    assert not made.single_factor


def test_facts_that_follow_from_a_compared_layout_are_no_confounders(lab: Lab) -> None:
    made = {"xfs": ("single / xfs", "xfs", "128"), "btrfs": ("2 drives / btrfs", "btrfs", "4096")}
    for line, kind, ahead in made.values():
        facts = FACTS | {"stream.0.file_system": kind, "device.loop0.read_ahead_kb": ahead, "layout": line}
        lab.measure(10.0, 11.0, layout=line, facts=facts)
    found = compare(CompareQuery("iodepth", ("layout",)))
    assert {series.name for series in found.panels[0].series} == {line for line, _, _ in made.values()}
    assert {(d.kind, d.name) for d in found.differs} == {
        (DifferenceKind.FOLLOWS, "file_system"),
        (DifferenceKind.FOLLOWS, "device.read_ahead_kb"),
    }
    assert found.single_factor


def test_parts_of_layouts_are_dimensions_and_the_line_does_not_confound_them(lab: Lab) -> None:
    for line, value in (("raid0 x1 chunk 64k", 10.0), ("raid0 x2 chunk 64k", 20.0), ("raid1 x2", 30.0)):
        lab.measure(value, value + 1, layout=line, facts=FACTS | {"layout": line})
    found = compare(CompareQuery("layout.drives", ("layout.level",)))
    assert [(level.text, level.number) for level in found.levels] == [("1", 1), ("2", 2)]
    assert [series.name for series in found.panels[0].series] == ["raid0", "raid1"]
    assert found.differs == ()
    assert found.single_factor


def test_other_parts_of_layouts_confound(lab: Lab) -> None:
    lab.measure(10.0, layout="raid0 x2 chunk 64k / xfs")
    lab.measure(20.0, layout="raid5 x3 chunk 128k / xfs noatime")
    found = compare(CompareQuery("iodepth", ("layout.level",)))
    assert [(one.kind, one.name) for one in found.differs] == [
        (DifferenceKind.CONFOUNDED, "layout.drives"),
        (DifferenceKind.CONFOUNDED, "layout.chunk"),
        (DifferenceKind.CONFOUNDED, "layout"),
    ]
    assert "(raid0: default options; raid5: noatime)" in found.differs[-1].text


def test_firmware_that_changed_between_runs_confounds(lab: Lab) -> None:
    second = Lab(lab.target, number=2)
    lab.measure(10.0, 11.0, facts=FACTS | {"device.nvme0n1.firmware": "A"})
    second.measure(20.0, 21.0, ioengine="psync", facts=FACTS | {"device.nvme0n1.firmware": "B"})
    assert [d.name for d in compare(ENGINES).differs] == ["run", "device.firmware"]


def test_a_fact_that_follows_x_in_every_series_is_reported_but_no_confounder(lab: Lab) -> None:
    for engine in ("io_uring", "psync"):
        lab.measure(10.0, 11.0, ioengine=engine, iodepth=1, numjobs=1)
        lab.measure(40.0, 41.0, ioengine=engine, iodepth=2, numjobs=2)
    made = compare(ENGINES)
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.ALONG_X, "numjobs")]
    assert made.single_factor


def test_repeats_may_be_in_several_runs_but_different_runs_of_series_are_a_difference(lab: Lab) -> None:
    second = Lab(lab.target, number=2)
    lab.measure(10.0)
    second.measure(11.0)
    lab.measure(20.0, ioengine="psync")
    assert compare(ENGINES).differs == ()
    second.measure(5.0, ioengine="libaio", iodepth=8)
    lab.measure(6.0, iodepth=8)
    assert [(d.kind, d.name) for d in compare(ENGINES).differs] == [(DifferenceKind.CONFOUNDED, "run")]


def test_targets_can_be_the_series_and_their_serials_do_not_confound(lab: Lab) -> None:
    other = a_target(lab.target.host, "fast")
    lab.measure(10.0, 11.0, facts=FACTS | {"device.sda.serial": "A", "stream.0.device": "sda"})
    lab.measure(20.0, 21.0, target=other, facts=FACTS | {"device.sdb.serial": "B", "device.scheduler": "bfq"})
    made = compare(CompareQuery("iodepth", ("target",)))
    assert [series.name for series in made.panels[0].series] == ["a/fast", "a/scratch"]
    assert [d.name for d in made.differs] == ["device.scheduler"]


@pytest.mark.parametrize("query", [CompareQuery("iodepth", ("controller",)), CompareQuery("controller", ())])
def test_compared_controllers_are_no_second_cause(lab: Lab, query: CompareQuery) -> None:
    for model in ("M1015", "LSI 9266"):
        lab.measure(10.0, 11.0, facts={**FACTS, "device.sda.controller.model": model})
    assert not compare(query).differs
    assert [d.label for d in compare(ENGINES).differs] == ["Controller"]


def test_two_factors_together_are_no_single_factor(lab: Lab) -> None:
    lab.measure(10.0, 11.0, scheduler="none")
    lab.measure(20.0, 21.0, scheduler="bfq", ioengine="psync")
    made = compare(CompareQuery("iodepth", ("ioengine", "scheduler")))
    assert [series.key for series in made.panels[0].series] == ["io_uring,none", "psync,bfq"]
    assert made.verdict == "Series differ in I/O engine and I/O scheduler together."


def test_facts_of_the_configuration_can_be_compared(lab: Lab) -> None:
    lab.measure(10.0, 11.0, facts=FACTS | {"device.nvme0n1.firmware": "A"})
    lab.measure(20.0, 21.0, facts=FACTS | {"device.nvme0n1.firmware": "B"})
    made = compare(CompareQuery("iodepth", ("fact.device.firmware",)))
    assert [series.name for series in made.panels[0].series] == ["A", "B"]
    assert made.verdict == "Single-factor: series differ in Firmware alone."


def test_configurations_that_differ_in_one_fact_are_single_factor_and_in_two_are_not(lab: Lab) -> None:
    lab.measure(10.0, 11.0)
    lab.measure(20.0, 21.0, facts=FACTS | {"kernel.release": "6.18.0"})
    made = compare(CompareQuery("iodepth", ("configuration",)))
    assert made.single_factor
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.FOLLOWS, "kernel.release")]
    assert made.differs[0].text.endswith("the only fact in which the configurations differ.")
    lab.measure(30.0, 31.0, facts={"kernel.release": "6.19.0", "device.scheduler": "bfq"})
    assert compare(CompareQuery("iodepth", ("configuration",))).verdict.startswith("Confounded by ")


def test_the_factors_of_a_change_do_not_confound_and_the_base_is_the_baseline(lab: Lab) -> None:
    lab.measure(20.0, 21.0, scheduler="none", change="I/O scheduler none", facts=FACTS | {"device.scheduler": "none"})
    lab.measure(10.0, 11.0, scheduler="mq-deadline", change="base", facts=FACTS | {"device.scheduler": "mq-deadline"})
    made = compare(CompareQuery("iodepth", ("change",)))
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.FOLLOWS, "scheduler")]
    assert made.single_factor
    assert made.baseline == "base"


def test_a_size_in_bytes_follows_from_its_share_of_the_capacity(lab: Lab) -> None:
    lab.measure(20.0, 21.0, size=2**30, size_percent=10)
    lab.measure(10.0, 11.0, size=7 * 2**30, size_percent=70)
    made = compare(CompareQuery("iodepth", ("size_percent",)))
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.FOLLOWS, "size")]


def test_a_stream_with_a_target_of_its_own_has_the_facts_of_that_target(lab: Lab) -> None:
    def array(number: int, device: str, file_system: str, layout: str) -> dict[str, str]:
        stream = {"device": device, "file_system": file_system, "layout": layout, "target": device}
        of_stream = {f"stream.{number}.{name}": text for name, text in stream.items()}
        return of_stream | {f"device.{device}.stable_id": device, f"device.{device}.below.b{device}": f"b{device}"}

    first, second = {**array(0, "md0", "btrfs", "A"), "device.bmd0.serial": "1"}, ("md1", "ext4", "B")
    alone = lab.measure(10.0, 11.0, facts={**FACTS, **array(0, *second), "device.bmd1.serial": "2"})
    together = lab.measure(5.0, 6.0, facts={**FACTS, **first, **array(1, *second), "device.bmd1.serial": "2"})
    StreamRun.objects.filter(results__in=together).update(stream=1)
    for results, beside in ((alone, "alone"), (together, "first")):
        point = results[0].point | {"stream": "second", "beside": beside}
        made = Result.objects.filter(pk__in=[each.pk for each in results])
        made.update(point=point, point_key=point_key(point))
    rows = read_rows(Result.objects.all())
    (facts,) = {tuple(sorted(row.facts.items())) for row in rows}
    assert {"file_system": "ext4", "layout": "B", "device.serial": "2"}.items() <= dict(facts).items()
    together_or_alone = compare(CompareQuery("iodepth", ("beside",)))
    assert len(together_or_alone.panels[0].series) == 2
    assert [(d.kind, d.name) for d in together_or_alone.differs] == []
