import pytest
from pytest_django import DjangoAssertNumQueries

from webapp.hosts.services import rename_host
from webapp.results.metrics import METRICS
from webapp.results.models import Result, known
from webapp.results.reading.filter import FilterRefused, ResultFilter, read_filter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import read_rows
from webapp.results.selectors import current_attempt, series
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import Lab, add_samples

pytestmark = pytest.mark.django_db


def asked(query: str) -> list[float]:
    pairs = [tuple(pair.split("=", 1)) for pair in query.split("&") if pair]
    return sorted(known(result.iops) for result in ResultQuery.of(read_filter(pairs)).results)  # type: ignore[arg-type]


@pytest.fixture
def lab() -> Lab:
    lab = Lab(a_target(a_host("a"), "scratch", model="FAST"))
    lab.measure(1.0, 2.0, block_size=4096, direct=True)
    lab.measure(3.0, block_size=8192, direct=False, scheduler="none")
    lab.measure(4.0, block_size=16384, pattern="randwrite", direction="write", scheduler="mq-deadline")
    return lab


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", [1, 2, 3, 4]),
        ("factor.block_size=4k", [1, 2]),
        ("factor.block_size=4096&factor.block_size=16k", [1, 2, 4]),
        ("factor.block_size=8k..16k *2", [3, 4]),
        ("factor.direct=off", [3]),
        ("factor.scheduler=none&factor.block_size=4k", []),
        ("factor.scheduler=none, mq-deadline", [3, 4]),
        ("factor.scheduler=not set", [1, 2]),
        ("factor.scheduler=none,Not set", [1, 2, 3]),
        ("factor.scheduler=not set&factor.scheduler=none&factor.direct=on", [1, 2]),
        ("factor.iodepth=not set", []),
        ("direction=write", [4]),
        ("run=1", [1, 2, 3, 4]),
        ("run=2", []),
        ("host=a&target=a/scratch&plan=plan-1", [1, 2, 3, 4]),
        ("target=a/other", []),
        ("run=1..3,9", [1, 2, 3, 4]),
        ("repeat=2", [2]),
        ("repeat=1..1", [1, 3, 4]),
        ("model=FAST", [1, 2, 3, 4]),
        ("model=SLOW&model=FAST", [1, 2, 3, 4]),
        ("serial=SN9", []),
        ("configuration=0000000000", []),
        ("host=", [1, 2, 3, 4]),
    ],
)
def test_it_filters_by_place_and_by_any_factor(lab: Lab, query: str, values: list[float]) -> None:
    assert asked(query) == values


def test_a_configuration_is_named_by_the_beginning_of_its_digest(lab: Lab) -> None:
    lab.measure(7.0, facts={"kernel.release": "9"})
    digest = known(Result.objects.select_related("stream_run").get(iops=7.0).stream_run).configuration_id
    assert digest is not None
    assert asked(f"configuration={digest[:10]}") == [7.0]


def test_a_target_is_of_its_host(lab: Lab) -> None:
    other = a_target(a_host("b"), "scratch")
    Lab(other, number=2).measure(9.0)
    assert asked("target=b/scratch") == [9.0]
    assert asked("target=a/scratch") == [1, 2, 3, 4]


def test_a_filter_by_a_hosts_former_name_follows_the_rename(lab: Lab) -> None:
    Lab(a_target(a_host("b"), "scratch"), number=2).measure(9.0)
    rename_host(host=lab.target.host, slug="rack4", by=None)
    assert asked("host=a") == asked("host=rack4") == asked("target=a/scratch") == [1, 2, 3, 4]
    assert asked("host=a&host=rack4&host=b") == [1, 2, 3, 4, 9]
    assert asked("target=a/other") == asked("host=c") == []


def test_only_results_that_can_be_trusted_are_found_unless_asked(lab: Lab) -> None:
    lab.measure(5.0, invalid=True)
    assert asked("") == [1, 2, 3, 4]
    assert asked("invalid=1") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("colour", "red", "There is no filter `colour`"),
        ("run", "seven", "write run numbers"),
        ("run", "9..3", "a range must ascend"),
        ("run", "1..99999", "at most 1,000"),
        ("repeat", "first", "write repeat numbers"),
        ("configuration", "../x", "first 6 or more characters of a digest"),
        ("target", "scratch", "write a target as host/target"),
        ("direction", "up", "Use read, write, trim"),
        ("factor.blocksize", "4k", "Did you mean `block_size`?"),
        ("factor.block_size", "tiny", "factor.block_size: Block size: `tiny`"),
        ("factor.block_size", "not set, tiny", "factor.block_size: Block size: `tiny`"),
        ("factor.block_size", "not set,", "a level is missing between two commas"),
    ],
)
def test_it_says_what_is_wrong_with_a_filter(key: str, value: str, words: str) -> None:
    with pytest.raises(FilterRefused) as caught:
        read_filter([(key, value)])
    assert words in caught.value.message
    assert caught.value.code == "filter_refused"


def test_results_come_latest_first_with_everything_a_list_shows(
    lab: Lab, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(5):  # results, their points, runs, targets and configurations
        rows = [
            (r.iops, r.target_name, r.host, r.plan, r.repeat) for r in read_rows(ResultQuery.of(ResultFilter()).results)
        ]
    assert rows[0] == (4.0, "a/scratch", "a", "plan-1", 1)
    assert [row[0] for row in rows] == [4, 3, 2, 1]


def test_a_filter_on_a_factor_uses_the_index_of_points(lab: Lab) -> None:
    from django.db import connection

    found = ResultQuery.of(read_filter([("factor.block_size", "4k")])).results
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
        cursor.execute("DROP INDEX result_of_workload")  # without order, it may be read as a whole instead
    assert "result_point" in found.order_by().explain()


def test_a_filter_that_fits_no_import_reads_one_index(lab: Lab) -> None:
    """An alternative with a subquery would keep PostgreSQL from reading the results of the host alone."""
    assert "origin" not in str(ResultQuery.of(read_filter([("host", "a")])).results.only("id").query)


def test_a_series_goes_on_after_an_offset(lab: Lab) -> None:
    trial = Result.objects.latest("pk").trial
    attempt = current_attempt(known(trial))
    assert attempt is not None
    add_samples(attempt, 5)
    assert [sample.offset_ms for sample in series(attempt)] == [1000, 2000, 3000, 4000, 5000]
    assert [sample.offset_ms for sample in series(attempt, after_ms=3000)] == [4000, 5000]


def test_an_attachment_is_unpacked(lab: Lab) -> None:
    (attachment,) = known(Result.objects.latest("pk").stream_run).attachments.all()
    assert (attachment.name, attachment.content) == ("fio.json", b'{"fio version": "fio-3.33"}')


def test_every_metric_is_a_column_that_is_shown_with_its_unit() -> None:
    columns = {field.name for field in Result._meta.get_fields()}
    assert {metric.column for metric in METRICS.values() if metric.column} <= columns
    assert METRICS["copy_s"].format(12.345) == "12.3 s"
    assert METRICS["iops"].format(45_600) == "45.6k"
    assert METRICS["bytes_per_s"].format(1.5e9) == "1.50 GB/s"
    assert METRICS["latency_p99"].format(812_345) == "812 µs"
    assert METRICS["latency_p999"].format(None) == "–"
    assert [key for key, metric in METRICS.items() if not metric.lower_is_better] == [
        "iops", "bytes_per_s", "copy_bytes_per_s", "shared_percent", "tps", "oltp_tps",
        "memory_bytes_per_s",
    ]  # fmt: skip


def test_versions_of_a_plan_are_counted(lab: Lab) -> None:
    assert a_version(slug="plan-1").number == 2
