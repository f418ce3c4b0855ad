import pytest

from webapp.results.models import Result, known
from webapp.results.reading.filter import ResultFilter, read_filter
from webapp.results.reading.query import SORTS, ResultQuery, Sort, read_sort
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.results import Lab
from webapp.tests.refusals import refuses

pytestmark = pytest.mark.django_db
ALL = ResultFilter()
VALUES = [5.0, 1.0, 3.0, 3.0, 3.0, 2.0, 4.0]


@pytest.fixture(autouse=True)
def lab() -> Lab:
    lab = Lab(a_target(a_host("a"), "scratch"))
    lab.measure(*VALUES)
    return lab


def forth(sort: Sort, limit: int) -> list[list[float]]:
    pages, after = [], ""
    while True:
        page = ResultQuery.of(ALL).page(sort, limit=limit, after=after)
        pages.append([known(result.iops) for result in page.rows])
        if not page.older:
            return pages
        after = page.older


def test_pages_follow_one_another_without_gap_or_repetition() -> None:
    assert forth(Sort("iops"), 3) == [[5, 4, 3], [3, 3, 2], [1]]
    assert forth(Sort("iops", descending=False), 2) == [[1, 2], [3, 3], [3, 4], [5]]
    assert forth(Sort(), 4) == [VALUES[:2:-1], VALUES[2::-1]]


@pytest.mark.parametrize("key", SORTS)
@pytest.mark.parametrize("descending", [True, False])
def test_every_sort_goes_forth_and_back(key: str, descending: bool) -> None:
    Result.objects.update(p999_ns=7)
    sort = Sort(key, descending)
    first = ResultQuery.of(ALL).page(sort, limit=3)
    second = ResultQuery.of(ALL).page(sort, limit=3, after=first.older)
    back = ResultQuery.of(ALL).page(sort, limit=3, before=second.newer)
    assert [row.id for row in back.rows] == [row.id for row in first.rows]
    assert (first.newer, back.newer) == ("", "")
    assert back.older == first.older


def test_the_ends_lead_nowhere() -> None:
    whole = ResultQuery.of(ALL).page(Sort(), limit=7)
    assert (whole.newer, whole.older) == ("", "")
    empty = ResultQuery.of(read_filter([("run", "9")])).page(Sort(), limit=7)
    assert (empty.rows, empty.newer, empty.older) == ([], "", "")


def test_what_has_no_value_is_left_out_of_the_order_and_counted() -> None:
    Result.objects.filter(iops__gte=4).update(p999_ns=1000)
    sort = read_sort("-latency_p999")
    assert len(ResultQuery.of(ALL).page(sort, limit=10).rows) == 2
    assert ResultQuery.of(ALL).count_without_value(sort) == 5
    assert ResultQuery.of(ALL).count_without_value(Sort("iops")) == 0


def test_counting_stops_where_it_would_cost_more_than_it_tells() -> None:
    assert ResultQuery.of(ALL).count() == 7
    assert ResultQuery.of(ALL).count(3) == 4
    assert ResultQuery.of(read_filter([("repeat", "2..3")])).count() == 2


@pytest.mark.parametrize("text", ["speed", "--iops", "-"])
def test_a_sort_that_there_is_not_is_refused_by_name(text: str) -> None:
    with refuses("sort_unknown"):
        read_sort(text)


@pytest.mark.parametrize("row", ["x", "1~x", "~1", "nonsense~4"])
def test_an_unknown_row_is_refused(row: str) -> None:
    with refuses("page_unknown"):
        ResultQuery.of(ALL).page(Sort("iops"), limit=1, after=row)
