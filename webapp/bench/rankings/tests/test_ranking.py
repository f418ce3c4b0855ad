"""Rankings of stored results: what is ranked together, what is apart, and what is missing."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.bench.products import Kind
from webapp.bench.rankings.answer import answer, ranking_table
from webapp.bench.rankings.question import RankingRefused, read_question
from webapp.bench.rankings.ranking import Ranking, rank
from webapp.bench.rankings.standings import Lead, Standing
from webapp.core.errors import Refusal
from webapp.hosts.models import Host
from webapp.results.metrics import LOAD_ASKED, LOAD_REACHED
from webapp.results.models import Import, Result
from webapp.results.reading import content
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.results import FACTS, Lab
from worker.contract.workload import Pattern


def ranked(**asked: str | list[str]) -> Ranking:
    single = {key: value for key, value in asked.items() if isinstance(value, str)}
    return rank(read_question(single, {key: value for key, value in asked.items() if isinstance(value, list)}))


def names_of(ranking: Ranking) -> list[list[str]]:
    return [[entry.name for entry in group.entries] for group in ranking.groups]


@pytest.fixture
def host(db: None) -> Host:
    return a_host("storage1")


@pytest.fixture
def lab(host: Host) -> Callable[..., Lab]:
    """A run on a new drive."""
    made: list[Lab] = []

    def make(model: str, at: Host | None = None, serial: str = "") -> Lab:
        number = len(made) + 1
        drive = a_drive(at or host, f"nvme{number}", model=model, serial=serial or f"S{number}")
        made.append(Lab(drive, number=number))
        return made[-1]

    return make


def test_drives_of_one_host_are_one_ranking_the_best_first(lab: Callable[..., Lab]) -> None:
    for model, speed in (("A", 100.0), ("B", 300.0), ("C", 200.0)):
        lab(model).measure(speed, speed * 1.01, speed * 0.99)
    ranking = ranked()
    assert names_of(ranking) == [["B", "C", "A"]]
    assert ranking.groups[0].order.lead is Lead.CLAIMED
    assert ranking.groups[0].first.summary.mean == pytest.approx(300, rel=1e-3)


def test_another_host_is_ranked_apart_unless_hosts_are_put_together(lab: Callable[..., Lab]) -> None:
    other = a_host("storage2")
    for model, at in (("A", None), ("B", None), ("C", other), ("D", other)):
        lab(model, at).measure(100.0)
    assert sorted(map(sorted, names_of(ranked()))) == [["A", "B"], ["C", "D"]]
    (group,) = ranked(hosts="together").groups
    assert {entry.name: entry.where[0] for entry in group.entries} == {
        "A": "storage1", "B": "storage1", "C": "storage2", "D": "storage2",
    }  # fmt: skip


def test_other_conditions_are_ranked_apart(lab: Callable[..., Lab]) -> None:
    for model, engine in (("A", "io_uring"), ("B", "io_uring"), ("C", "libaio"), ("D", "libaio"), ("E", "psync")):
        lab(model).measure(100.0, ioengine=engine)
    ranking = ranked()
    assert sorted(map(sorted, names_of(ranking))) == [["A", "B"], ["C", "D"]]
    assert [group.first.name for group in ranking.alone] == ["E"]


def test_other_controllers_are_ranked_apart(lab: Callable[..., Lab]) -> None:
    for model, controller in (("A", "HBA 1"), ("B", "HBA 1"), ("C", "HBA 2")):
        lab(model).measure(100.0, facts=FACTS | {"device.nvme0.controller.model": controller})
    ranking = ranked()
    assert names_of(ranking) == [["A", "B"]]
    assert [group.first.where for group in ranking.alone] == [("storage1", "HBA 2")]


def test_two_drives_of_one_model_are_two_entries(lab: Callable[..., Lab]) -> None:
    lab("A", serial="first").measure(100.0)
    lab("A", serial="second").measure(200.0)
    (group,) = ranked().groups
    assert [(entry.product.kind, entry.product.value) for entry in group.entries] == [
        (Kind.SERIAL, "second"), (Kind.SERIAL, "first"),
    ]  # fmt: skip


def test_controllers_are_ranked_over_the_same_drives(lab: Callable[..., Lab]) -> None:
    for host_name, controller, speed in (("one", "HBA 1", 100.0), ("two", "HBA 2", 200.0)):
        lab("A", a_host(host_name)).measure(speed, facts=FACTS | {"device.nvme0.controller.model": controller})
    lab("B").measure(900.0, facts=FACTS | {"device.nvme0.controller.model": "HBA 3"})
    ranking = ranked(rank="controller")
    assert names_of(ranking) == [["HBA 2", "HBA 1"]]
    assert [group.first.name for group in ranking.alone] == ["HBA 3"]


def test_hosts_are_ranked_over_the_same_drives(lab: Callable[..., Lab]) -> None:
    for host_name, speed in (("one", 100.0), ("two", 200.0)):
        lab("A", a_host(host_name)).measure(speed)
    assert names_of(ranked(rank="host")) == [["two", "one"]]


def test_a_drive_that_was_measured_elsewhere_is_not_measured_here(lab: Callable[..., Lab]) -> None:
    for model in ("A", "B"):
        lab(model).measure(100.0, iodepth=1)
    lab("C").measure(100.0, iodepth=8)
    ranking = ranked()
    assert names_of(ranking) == [["A", "B"]] or names_of(ranking) == [["B", "A"]]
    assert ranking.not_measured == ("C",)


def test_invalid_results_are_not_ranked(lab: Callable[..., Lab]) -> None:
    for model in ("A", "B"):
        lab(model).measure(100.0)
    lab("C").measure(900.0, invalid=True)
    assert [set(names) for names in names_of(ranked())] == [{"A", "B"}]


def test_a_load_that_nobody_measured_has_a_nearest_one(lab: Callable[..., Lab]) -> None:
    for model in ("A", "B"):
        lab(model).measure(100.0, iodepth=32, block_size=4096)
    ranking = ranked(pattern="randread", block_size="8192", iodepth="16")
    assert ranking.load
    assert (ranking.load.block_size, ranking.load.iodepth) == (4096, 32)
    assert not ranking.was_wanted
    assert ranked(iodepth="32").was_wanted


def test_the_load_that_most_drives_have_is_shown_first(lab: Callable[..., Lab]) -> None:
    for model in ("A", "B", "C"):
        lab(model).measure(100.0, pattern="randwrite", direction="write")
    lab("D").measure(100.0)
    load = ranked().load
    assert load
    assert load.pattern is Pattern.RANDWRITE


def test_the_load_of_the_most_comparable_drives_is_shown_first(lab: Callable[..., Lab]) -> None:
    """Three hosts with one drive each have nothing to rank, however many they are."""
    for name in ("storage2", "storage3", "storage4"):
        lab(name, a_host(name)).measure(900.0, pattern="randwrite", direction="write")
    for model in ("A", "B"):
        lab(model).measure(100.0)
    load = ranked().load
    assert load
    assert load.pattern is Pattern.RANDREAD
    for title in ("First", "Second", "Third"):  # each without a host: at a place of its own
        an_import(title=title, drive=title, host="")
    assert ranked().load == load
    together = ranked(hosts="together").load
    assert together
    assert together.pattern is Pattern.RANDWRITE


def test_the_group_with_the_best_value_stands_first(lab: Callable[..., Lab]) -> None:
    other = a_host("storage2")
    for model, at, speed in (("A", None, 100.0), ("B", None, 90.0), ("C", None, 80.0), ("D", other, 900.0)):
        lab(model, at).measure(speed)
    lab("E", other).measure(50.0)
    assert names_of(ranked()) == [["D", "E"], ["A", "B", "C"]]


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"model": ["A", "B"]}, {"A", "B"}),
        ({"host": ["storage2"]}, {"C", "D"}),
        ({"host": ["storage2"], "model": ["C", "D"]}, {"C", "D"}),
        ({"tool": ["fio"]}, {"A", "B", "C", "D"}),
        ({"source": "own"}, {"A", "B", "C", "D"}),
        ({"source": "references"}, set()),
        ({"model": ["nothing has this name"]}, set()),
    ],
)
def test_filters(lab: Callable[..., Lab], asked: dict[str, str | list[str]], left: set[str]) -> None:
    other = a_host("storage2")
    for model, at in (("A", None), ("B", None), ("C", other), ("D", other)):
        lab(model, at).measure(100.0)
    assert {name for names in names_of(ranked(**asked)) for name in names} == left


def test_published_tables_are_ranked_apart_by_tool_and_claim_nothing(lab: Callable[..., Lab]) -> None:
    for model in ("A", "B"):
        lab(model).measure(100.0)
    for number, drive in enumerate(("PM9A3", "PM1733"), start=1):
        made = an_import(title=f"Tests {number}", drive=drive, text=PLAIN.replace("10200", f"{number}0200"))
        made.origins.update(host="server")
        Import.objects.filter(pk=made.pk).update(slug=f"reference-{number}")
        Result.objects.filter(origin__imported=made).update(reference=True)
    ranking = ranked()
    assert [set(names) for names in names_of(ranking)] == [{"A", "B"}, {"PM9A3", "PM1733"}]
    assert ranking.groups[1].order.lead is Lead.SEEN


def test_results_over_several_levels_of_a_setting_are_no_value(lab: Callable[..., Lab]) -> None:
    for model in ("A", "B"):
        lab(model).measure(100.0)
    mixed = lab("C")
    for scheduler in ("none", "bfq"):
        mixed.measure(100.0, facts=FACTS | {"device.scheduler": scheduler})
    ranking = ranked()
    assert [set(names) for names in names_of(ranking)] == [{"A", "B"}]
    assert [each.name for each in ranking.cells.undecided] == ["C"]


def test_a_shared_ceiling_stands_at_both_drives(lab: Callable[..., Lab]) -> None:
    for model, rates in (("A", (100, 400, 500, 502)), ("B", (50, 200, 501, 500)), ("C", (90, 200, 300, 440))):
        own = lab(model)
        for depth, rate in zip((1, 4, 32, 128), rates, strict=True):
            own.measure(float(rate), iodepth=depth)
    (group,) = ranked(iodepth="32").groups
    assert {entry.name for entry in group.entries if entry.shares_ceiling} == {"A", "B"}
    (group,) = ranked(iodepth="1").groups
    assert not any(entry.shares_ceiling for entry in group.entries)


def test_the_highest_load_within_a_latency_is_ranked(lab: Callable[..., Lab]) -> None:
    """By the rate at the highest share up to which no share exceeds the limit; the p99 of `max` does not count."""
    p99s_ms = {
        "A": {25: 0.2, 50: 0.8, 75: 3.0, 100: 0.9},
        "B": {25: 0.2, 50: 2.0, 75: 0.9, 100: 5.0},
        "C": {25: 0.1, 50: 0.2, 75: 0.3, 100: 9.0},
        "D": {25: 1.5, 50: 2.0, 75: 3.0, 100: 9.0},
    }
    for model, highest in (("A", 1000.0), ("B", 1800.0), ("C", 400.0), ("D", 9000.0)):
        own = lab(model)
        for share, p99_ms in p99s_ms[model].items():
            results = own.measure(*(highest * share / 100 * noise for noise in (1.0, 1.01, 0.99)), load=share)
            Result.objects.filter(pk__in=[each.pk for each in results]).update(p99_ns=1e6 * p99_ms)
    lab("E").measure(1e6)
    ranking = ranked(metric="within_1ms")
    (group,) = ranking.groups
    ranked_shares = [(entry.name, entry.share, entry.is_last_share) for entry in group.entries]
    assert ranked_shares == [("A", 50, False), ("B", 25, False), ("C", 75, True)]
    assert [round(entry.summary.mean) for entry in group.entries] == [500, 450, 300]
    assert [round(entry.less_than or 0) for entry in group.entries] == [750, 900, 400]
    assert group.order.lead is Lead.NONE  # B may reach up to 900
    standings = [placed.standing for placed in group.order.ranked]
    assert standings == [Standing.FIRST, Standing.LEVEL, Standing.BEHIND]
    out = answer(ranking)
    assert [(each.name, each.share) for each in out.beyond] == [("D", 25)]
    assert ranking.not_measured == ("E",)
    assert [(entry.share, round(entry.less_than or 0)) for entry in out.groups[0].entries] == [
        (50, 750),
        (25, 900),
        (75, 400),
    ]
    assert [line[14:15] for line in ranking_table(out).rows if line[3] == "D"] == [
        ("above the latency at each measured share of the load",)
    ]
    assert not ranked(metric="within_100us").groups


def test_a_share_that_could_not_keep_up_or_has_no_p99_ends_the_loads_within_a_latency(lab: Callable[..., Lab]) -> None:
    changes: dict[str, dict[str, Any]] = {
        "A": {"metrics": {LOAD_ASKED: 500.0, LOAD_REACHED: 60.0}}, "B": {"p99_ns": None}, "C": {}
    }  # fmt: skip
    for model, change in changes.items():
        own = lab(model)
        for share in (25, 50, 75):
            results = own.measure(*(1000 * share / 100 * noise for noise in (1.0, 1.01, 0.99)), load=share)
            if share == 50:
                Result.objects.filter(pk__in=[each.pk for each in results]).update(**change)
    (group,) = ranked(metric="within_1ms").groups
    assert {entry.name: entry.share for entry in group.entries} == {"A": 25, "B": 25, "C": 75}


def test_loads_within_a_latency_are_of_the_shown_block_size(lab: Callable[..., Lab]) -> None:
    """What exceeds the limit at another one is not named."""
    for model in ("A", "B", "C"):
        own = lab(model)
        for size in (4096, 65536) if model == "A" else (4096,):
            results = own.measure(500.0, 501.0, load=50, block_size=size)
            if size == 65536 or model == "C":
                Result.objects.filter(pk__in=[each.pk for each in results]).update(p99_ns=5e6)
    ranking = ranked(metric="within_1ms", block_size="4096")
    assert [entry.name for entry in ranking.cells.beyond] == ["C"]
    assert names_of(ranking) == [["A", "B"]] or names_of(ranking) == [["B", "A"]]


def test_of_a_mix_the_worse_direction_decides(lab: Callable[..., Lab]) -> None:
    for model in ("A", "B"):
        own = lab(model)
        for direction, p99_ns in (("read", 0.5e6), ("write", 0.5e6 if model == "A" else 5e6)):
            results = own.measure(500.0, 501.0, load=50, pattern="randrw", direction=direction)
            Result.objects.filter(pk__in=[each.pk for each in results]).update(p99_ns=p99_ns)
    ranking = ranked(metric="within_1ms")
    assert [entry.name for entry in ranking.cells.beyond] == ["B"]


def test_of_latencies_the_lowest_is_first(lab: Callable[..., Lab]) -> None:
    for model, speed in (("A", 100.0), ("B", 300.0)):
        lab(model).measure(speed)
    assert names_of(ranked(metric="latency_mean")) == [["B", "A"]]


def test_nothing_measured(db: None) -> None:
    ranking = ranked()
    assert ranking.load is None
    assert [*ranking.groups, *ranking.alone, *ranking.scores, *ranking.not_measured] == []


def test_the_number_of_queries_does_not_depend_on_the_number_of_drives(lab: Callable[..., Lab]) -> None:
    counts = []
    for count in (2, 10):
        for number in range(count):
            own = lab(f"drive {count} {number}")
            for depth in (1, 32):
                own.measure(100.0 + number, iodepth=depth)
                own.measure(100.0 + number, iodepth=depth, pattern="randwrite", direction="write")
        content.clear()
        with CaptureQueriesContext(connection) as queries:
            ranking = ranked()
            assert ranking.groups
            assert ranking.scores
            assert ranking.not_measured == ()
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 14


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"rank": "nothing"}, "ranking_value_unknown"),
        ({"pattern": "randreed"}, "ranking_value_unknown"),
        ({"metric": "speed"}, "ranking_value_unknown"),
        ({"hosts": "mixed"}, "ranking_value_unknown"),
        ({"source": "mine"}, "ranking_value_unknown"),
        ({"use": "games"}, "ranking_value_unknown"),
        ({"host": ["a" * 301]}, "ranking_value_unknown"),
        ({"host": ["\0"]}, "ranking_value_unknown"),
        ({"host": [str(number) for number in range(101)]}, "ranking_value_unknown"),
        ({"block_size": "0"}, "value_refused"),
        ({"iodepth": "-1"}, "value_refused"),
        ({"numjobs": "9" * 40}, "value_refused"),
        ({"weight": ["1", "2"]}, "ranking_weights"),
        ({"weight": ["0", "0", "0", "0"]}, "ranking_weights"),
        ({"weight": ["101", "0", "0", "0"]}, "value_refused"),
    ],
)
def test_a_wrong_value_is_refused(asked: dict[str, str | list[str]], code: str) -> None:
    with pytest.raises(Refusal) as refused:
        ranked(**asked)
    assert refused.value.code == code
    assert isinstance(refused.value, RankingRefused) or code == "value_refused"
