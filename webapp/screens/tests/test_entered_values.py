"""Values entered by hand: an import with a unit of its own, and its comparison."""

import csv
import json

import pytest
from django.test import Client
from django.utils.html import escape

from webapp.analysis.comparing import compare
from webapp.analysis.question import read_query
from webapp.results.models import Import, ImportState, Result
from webapp.results.reading.rows import read_rows

pytestmark = pytest.mark.django_db
FORM = {
    "name": "Nightly job", "unit": "min", "better": "lower", "differs": "host", "values": "old: 348\nnew: 30\n",
    "labels": "drive: Mtron MSP7535\n", "note": "Maintenance queries.", "on": "2009-05-22",
}  # fmt: skip
KEY = "Nightly job [min] lower is better"


def test_values_become_an_import_without_io(operator: Client) -> None:
    page = operator.post("/imports/values/", FORM, follow=True)
    (made,) = Import.objects.all()
    assert (made.title, made.state, made.results_made, made.note) == ("Nightly job", ImportState.DONE, 2, FORM["note"])
    old, new = sorted(read_rows(Result.objects.all()), key=lambda row: row.trial)
    assert [(row.host, row.metrics, row.direction, row.iops) for row in (old, new)] == [
        ("old", {KEY: 348.0}, "none", None), ("new", {KEY: 30.0}, "none", None),
    ]  # fmt: skip
    assert (old.model, old.tool, f"{old.measured_at:%Y-%m-%d}") == ("Mtron MSP7535", "entered by hand", "2009-05-22")
    assert "Nightly job: 348 min" in page.content.decode()


def test_exports_have_them_and_their_labels(operator: Client) -> None:
    operator.post("/imports/values/", FORM | {"differs": "change"})
    rows = csv.DictReader(operator.get("/results.csv").getvalue().decode().splitlines())
    found = [(json.loads(row["import_labels"])["change"], json.loads(row["other_metrics"])) for row in rows]
    assert sorted(found) == [("new", {KEY: 30.0}), ("old", {KEY: 348.0})]


def compared(operator: Client, **changes: str) -> str:
    page = operator.post("/imports/values/", FORM | changes, follow=True)
    address = page.context["comparison"]
    assert address.replace("&", "&amp;") in page.content.decode()
    answer = operator.get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_their_ratio_is_said_with_the_values(operator: Client) -> None:
    page = compared(operator)
    assert "new took ×0.09 the time of old (348 min → 30 min, measured once)." in page
    assert f'<option value="{KEY}" selected' in page


def test_values_that_differ_by_less_than_the_shown_digits_are_not_equal(operator: Client) -> None:
    page = compared(operator, values="old: 348\nnew: 347")
    assert "new took almost the same time as old (348 min → 347 min, measured once)." in page
    assert "new took the same time as old (" in compared(operator, title="Again", values="old: 348\nnew: 348")


def test_repeats_and_other_labels_are_compared_like_those_of_runs(operator: Client) -> None:
    page = compared(
        operator, differs="change", values="before: 10 11 10.5\nafter: 20 21; 20.5", better="higher", unit=""
    )
    assert "one value each" not in page
    assert "after" in page
    assert Result.objects.filter(origin__other__change="after").count() == 3
    assert set(Result.objects.values_list("origin__repeat", flat=True)) == {1, 2, 3}


def test_the_printed_digits_are_their_step(operator: Client) -> None:
    """True +10 % with 1 % noise: two assumed digits would widen the interval to ±10 %."""
    values = "before: 995 1010 1000 990 1005\nafter: 1105 1095 1100 1110 1090"
    compared(operator, values=values, better="higher", unit="")
    key = "Nightly job [] higher is better"
    made = compare(read_query([("x", "direction"), ("series", "host"), ("metric", key), ("baseline", "before")]))
    against = next(one for one in made.panels[0].series if not one.is_baseline).against_baseline
    assert against is not None
    assert against.ratio.low is not None
    assert against.ratio.high is not None
    assert 1.07 < against.ratio.low < 1.1 < against.ratio.high < 1.13


def test_the_most_different_values_are_compared(operator: Client) -> None:
    assert "old" in compared(operator, values="old: 1e18\nnew: 1e-9")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"values": "348"}, "is not a line of values"),
        ({"values": "old: 348\nold: 30"}, "each name once"),
        ({"values": "old: much"}, "is not a number of 0 or more, such as 348"),
        ({"values": "old: -3"}, "is not a number of 0 or more"),
        ({"values": "old: nan"}, "is not a number of 0 or more"),
        ({"values": "old: 1_000"}, "is not a number of 0 or more"),
        ({"values": "old: 1e308"}, "is outside 1e-09 to 1e+18. Use another unit."),
        ({"values": "old: 1e18\nnew: 1e-300"}, "is outside 1e-09 to 1e+18. Use another unit."),
        ({"labels": "host: db1"}, "differs between the values. Remove it from the labels of all values."),
        ({"values": " "}, "Enter 1 to 1,000 values."),
        ({"name": "job [night]"}, "no square brackets"),
        ({"name": ""}, "Say what was measured"),
        ({"on": "yesterday"}, "is not a date"),
        ({"labels": "db1"}, "is not a label"),
    ],
)
def test_a_wrong_value_is_refused_with_the_reason(operator: Client, changes: dict[str, str], words: str) -> None:
    page = operator.post("/imports/values/", FORM | changes, follow=True).content.decode()
    assert words in page
    assert not Import.objects.exists()


def test_a_viewer_may_not_enter_values(viewer: Client) -> None:
    assert viewer.post("/imports/values/", FORM).status_code in (302, 403)
    assert not Import.objects.exists()


def test_bench_links_to_explore_that_compares_them(operator: Client) -> None:
    operator.post("/imports/values/", FORM)
    page = operator.get("/bench/?product=host:old&product=host:new&baseline=host:old")
    _, address = page.context["other_values"]
    assert "no two products have results for the same workload" not in page.content.decode()
    assert "Nothing to compare" not in page.content.decode()
    assert f'<a href="{escape(address)}">compare Nightly job in Explore</a>' in page.content.decode()
    assert "new took ×0.09 the time of old (348 min → 30 min, measured once)." in operator.get(address).content.decode()
