"""Every choice that the page of a comparison offers leads to a comparison, whatever was chosen before."""

from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlencode

import pytest
from django.db.models import F
from django.test import Client

from webapp.analysis.models import SavedComparison
from webapp.analysis.question import CHARTS, VIEWS, Pairs
from webapp.core.models import User
from webapp.results.models import Result
from webapp.runs.models import Run
from webapp.screens.tests.test_explore import run, with_histograms  # noqa: F401 - fixture
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run
from webapp.tests.sampling import part_of

PARTS = 6  # each change is tried from one of the six starts
ENGINES = "run=1&x=iodepth&series=ioengine&panel=pattern"
STARTS = {
    "default": "run=1",
    "baseline": f"{ENGINES}&baseline=psync&metric=bytes_per_s",
    "two series": "run=1&x=block_size&series=ioengine&series=pattern&baseline=io_uring,read&factor.iodepth=8",
    "fixed levels": "run=1&x=iodepth&factor.ioengine=psync&factor.pattern=randwrite&chart=heat&cells=ratio",
    "latency of mixes": f"{ENGINES}&view=latency&chart_point=randrw,write|1&baseline=psync",
    "time line of mixes": f"{ENGINES}&view=timeline&chart_point=randrw|1&baseline=psync",
}


class _Form(HTMLParser):
    """The first form with `data-choice`: what it would send, what each select offers, and the links of its tabs."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.pairs: list[tuple[str, str]] = []  # as sent unchanged
        self.offered: list[tuple[int, Sequence[str]]] = []  # place in `pairs` and values of each select
        self.boxes: list[tuple[str, str]] = []
        self.tabs: list[str] = []
        self._inside = self._in_tabs = False
        self._values: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if tag == "form" and "data-choice" in given:
            self._inside = True
        if tag == "nav":
            self._in_tabs = given.get("class") == "tabs"
        if tag == "a" and self._in_tabs:
            self.tabs.append(given["href"])
        if not self._inside:
            return
        if tag == "select":
            self._values = []
            self.offered.append((len(self.pairs), self._values))
            self.pairs.append((given["name"], ""))
        if tag == "option":
            self._option(given)
        if tag == "input" and given.get("type") == "checkbox":
            self.boxes.append((given["name"], given["value"]))
        if tag == "input" and (given.get("type") != "checkbox" or "checked" in given):
            self.pairs.append((given["name"], given.get("value", "")))

    def _option(self, given: dict[str, str]) -> None:
        name, value = self.pairs[-1]
        if "selected" in given or not self._values:  # a browser sends the first option where none is selected
            value = given["value"]
        self._values.append(given["value"])
        self.pairs[-1] = (name, value)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False

    def changes(self) -> Iterator[Pairs]:
        """What is sent after one change: each option of each select, each box."""
        for place, values in self.offered:
            name, chosen = self.pairs[place]
            for value in values:
                if value != chosen:
                    yield [*self.pairs[:place], (name, value), *self.pairs[place + 1 :]]
        for box in self.boxes:
            yield [pair for pair in self.pairs if pair != box] if box in self.pairs else [*self.pairs, box]


def page_at(client: Client, query: str) -> _Form:
    answer = client.get(f"/explore/?{query}", follow=True)
    assert answer.status_code == 200
    return _Form(answer.content.decode())


def arrived(client: Client, query: str) -> dict[str, str]:
    """The address after the redirects."""
    answer = client.get(f"/explore/?{query}", follow=True)
    assert answer.status_code == 200
    return dict(parse_qsl(answer.request["QUERY_STRING"]))


def with_mixes(run: Run) -> None:  # noqa: F811 - not the fixture
    """Reads become mixes: each trial measured writes as well."""
    for result in run.results.filter(point__pattern="randread"):
        point = result.point | {"pattern": "randrw", "read_percent": 70}
        Result.objects.filter(pk=result.pk).update(point=point, point_key="mix" + result.point_key[3:])
        result.pk, result.direction = None, "write"
        result.point, result.point_key = point, "mix" + result.point_key[3:]
        result.save()


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS)
def test_no_single_change_ends_in_an_error(operator: Client, run: Run, start: str) -> None:  # noqa: F811 - fixture
    with_histograms(run)
    with_mixes(run)
    form = page_at(operator, STARTS[start])
    changes = list(form.changes())
    assert len(changes) > 60
    assert len(form.tabs) == 3
    tried = part_of(changes, list(STARTS).index(start), PARTS)
    for address in [*(f"?{urlencode(pairs)}" for pairs in tried), *form.tabs]:
        answer = operator.get(f"/explore/{address}", follow=True)
        assert answer.status_code == 200, address
        assert "before=" not in answer.request["QUERY_STRING"]


def changed(form: _Form, **choices: str) -> str:
    return urlencode([(name, choices.get(name, value)) for name, value in form.pairs])


def test_a_baseline_of_other_series_is_dropped(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    form = page_at(operator, f"{ENGINES}&baseline=psync")
    assert "baseline" not in arrived(operator, changed(form, series="direction"))
    assert arrived(operator, changed(form, metric="bytes_per_s"))["baseline"] == "psync"


def test_a_dimension_that_is_chosen_for_x_leaves_the_series(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    form = page_at(operator, ENGINES)
    found = arrived(operator, changed(form, x="ioengine"))
    assert (found["x"], found["series"], found["panel"]) == ("ioengine", "iodepth", "pattern")


def test_a_dimension_that_is_chosen_for_the_series_leaves_the_charts(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    form = page_at(operator, "run=1&x=iodepth&panel=pattern")
    found = arrived(operator, urlencode([("series", "pattern") if p == ("series", "") else p for p in form.pairs]))
    assert (found["x"], found["series"], found.get("panel")) == ("iodepth", "pattern", None)


def test_one_level_of_a_factor_is_dropped_when_the_factor_becomes_x(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    form = page_at(operator, "run=1&x=iodepth&factor.ioengine=psync&factor.block_size=4k")
    found = arrived(operator, changed(form, x="ioengine"))
    assert found["x"] == "ioengine"
    assert "factor.ioengine" not in found
    assert found["factor.block_size"] == "4k"


UNREADABLE = [
    ("factor.iodepth", "1..4", "Queue depth: <code>1..4</code> has no step"),
    ("factor.iodepth", "many", "Queue depth: <code>many</code> is not a whole number"),
    ("run", "first", "run=first: write run numbers"),
]


@pytest.mark.parametrize(("key", "text", "reason"), UNREADABLE)
def test_a_typed_filter_that_cannot_be_read_is_dropped_with_the_reason(
    operator: Client,
    run: Run,  # noqa: F811 - fixture
    key: str,
    text: str,
    reason: str,
) -> None:
    form = page_at(operator, f"{ENGINES}&factor.block_size=4k")
    answer = operator.get(f"/explore/?{urlencode([*form.pairs, (key, text)])}", follow=True)
    assert answer.status_code == 200
    found = parse_qsl(answer.request["QUERY_STRING"])
    assert (key, text) not in found
    assert ("factor.block_size", "4k") in found
    page = answer.content.decode()
    assert f"Dropped choices that do not fit: filter {reason}" in page
    assert 'id="compare-data"' in page


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS)
def test_no_change_of_the_address_ends_in_an_error(operator: Client, run: Run, start: str) -> None:  # noqa: F811 - fixture
    """A choice that is changed in the address itself, without the form's `before`."""
    with_histograms(run)
    with_mixes(run)
    found = operator.get(f"/explore/?{STARTS[start]}", follow=True)
    given = parse_qsl(found.request["QUERY_STRING"])
    for key, value in part_of(ADDRESS_CHANGES, list(STARTS).index(start), PARTS):
        address = urlencode([*(pair for pair in given if pair[0] != key), (key, value)])
        answer = operator.get(f"/explore/?{address}", follow=True)
        assert answer.status_code == 200, address


CHOICES = {
    "x": ("", "iodepth", "block_size", "ioengine", "pattern", "host", "run", "direction"),
    "series": ("", "iodepth", "block_size", "ioengine", "pattern", "host", "run", "direction", "configuration"),
    "panel": ("", "iodepth", "ioengine", "pattern", "direction", "scheduler"),
    "metric": ("bytes_per_s", "latency_p99", "copy_s"),
    "baseline": ("psync", "posix"),
    "view": tuple(VIEWS),
    "chart": tuple(CHARTS),
}
ADDRESS_CHANGES = [(key, value) for key, values in CHOICES.items() for value in values]


def test_a_series_without_x_gets_another_x(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    found = arrived(operator, "run=1&series=iodepth&panel=pattern")
    assert (found["x"], found["series"], found["panel"]) == ("ioengine", "iodepth", "pattern")


def test_too_many_lines_are_said_on_a_page_that_offers_what_to_choose(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    many = first_look_run(run.version, list(run.targets.all()), repeats=5)
    finish_run(many)
    many.results.update(repeat=F("pk"))
    form = page_at(operator, ENGINES.replace("run=1", "run=2"))
    answer = operator.get(f"/explore/?{changed(form, series='repeat')}", follow=True)
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "series are too many" in page
    assert 'name="factor.ioengine"' in page


def test_a_saved_comparison_opens_without_its_baseline_where_that_is_gone(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    owner = User.objects.get(username="olga")
    saved = SavedComparison.objects.create(owner=owner, title="Engines", query=f"{ENGINES}&baseline=posix")
    answer = operator.get(f"/comparisons/{saved.pk}/", follow=True)
    assert answer.status_code == 200
    assert "Changed since it was saved" in answer.content.decode()
