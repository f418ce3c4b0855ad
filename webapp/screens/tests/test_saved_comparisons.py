import csv

import pytest
from django.test import Client

from webapp.analysis.models import SavedComparison
from webapp.core.models import AuditEntry, Role
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run

QUERY = "run=1&x=iodepth&series=ioengine&panel=pattern&chart=heat"


@pytest.fixture
def run(db: None) -> Run:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))])
    finish_run(run)
    return run


@pytest.fixture
def saved(operator: Client, run: Run) -> SavedComparison:
    operator.post("/comparisons/save/", {"title": " Engines ", "note": "Before <b>the</b> update", "query": QUERY})
    return SavedComparison.objects.get()


def text(client: Client, address: str) -> str:
    return client.get(address, follow=True).content.decode()


def test_it_says_what_to_do_while_nothing_is_saved(operator: Client) -> None:
    assert "No saved comparisons yet" in text(operator, "/comparisons/")
    assert "saved comparisons of your own yet" in text(operator, "/comparisons/?show=own")
    assert "No deleted comparisons" in text(operator, "/comparisons/?show=deleted")


def test_it_quotes_the_title_after_saving(operator: Client, run: Run) -> None:
    given = {"title": "Which drive?", "query": QUERY}
    page = operator.post("/comparisons/save/", given, follow=True).content.decode()
    assert "Saved as “Which drive?”. You can send its address" in page


def test_it_opens_what_was_saved_at_its_permalink(viewer: Client, saved: SavedComparison) -> None:
    assert (saved.title, saved.query) == ("Engines", QUERY)
    answer = viewer.get(f"/comparisons/{saved.pk}/")
    assert answer["Location"] == f"/explore/?{QUERY}&saved={saved.pk}"
    page = text(viewer, answer["Location"])
    assert "Before &lt;b&gt;the&lt;/b&gt; update" in page
    assert "Changed since it was saved" not in page
    assert "Save comparison" not in page
    assert "Changed since it was saved" in text(viewer, f"{answer['Location']}&metric=latency_p99")
    assert "Engines" in text(viewer, "/comparisons/")


def test_it_changes_ones_own_and_writes_down_who_did(operator: Client, saved: SavedComparison) -> None:
    operator.post(f"/comparisons/{saved.pk}/change/", {"title": "Both", "note": "", "query": f"{QUERY}&saved=9"})
    saved.refresh_from_db()
    assert (saved.title, saved.note, saved.query) == ("Both", "", QUERY)
    assert [entry.action for entry in AuditEntry.objects.filter(action__startswith="comparison")] == [
        "comparison.change", "comparison.create",
    ]  # fmt: skip


@pytest.mark.parametrize("action", ["change", "delete"])
def test_it_leaves_somebody_elses_alone(saved: SavedComparison, action: str) -> None:
    other = Client()
    other.force_login(a_user("oskar", Role.OPERATOR))
    page = other.post(f"/comparisons/{saved.pk}/{action}/", {"title": "x", "query": QUERY}, follow=True)
    assert "copy it and change the copy" in page.content.decode()
    saved.refresh_from_db()
    assert (saved.title, saved.deleted_at) == ("Engines", None)
    other.post(f"/comparisons/{saved.pk}/copy/")
    copy = SavedComparison.objects.latest("pk")
    assert (copy.title, copy.query, copy.owner and copy.owner.username) == ("Engines (copy)", QUERY, "oskar")


def test_an_admin_may_change_everybodys(saved: SavedComparison) -> None:
    admin = Client()
    admin.force_login(a_user("ada", Role.ADMIN))
    admin.post(f"/comparisons/{saved.pk}/change/", {"title": "Tidy", "query": QUERY})
    saved.refresh_from_db()
    assert saved.title == "Tidy"


def test_it_deletes_with_undo_and_does_neither_twice(operator: Client, saved: SavedComparison) -> None:
    page = operator.post(f"/comparisons/{saved.pk}/delete/", follow=True).content.decode()
    assert "Engines is deleted." in page
    assert "Undo" in page
    assert "was deleted before" in operator.post(f"/comparisons/{saved.pk}/delete/", follow=True).content.decode()
    assert "Engines" in text(operator, "/comparisons/?show=deleted")
    refused = operator.post(f"/comparisons/{saved.pk}/change/", {"title": "x", "query": QUERY}, follow=True)
    assert "Restore it first" in refused.content.decode()
    assert "is back" in operator.post(f"/comparisons/{saved.pk}/restore/", follow=True).content.decode()
    assert "is not deleted" in operator.post(f"/comparisons/{saved.pk}/restore/", follow=True).content.decode()
    assert AuditEntry.objects.filter(action="comparison.delete").count() == 1


@pytest.mark.parametrize(
    ("title", "query", "words"),
    [("  ", QUERY, "Give the comparison a title"), ("x" * 201, QUERY, "is 200"), ("x", "x=nonsense", "no factor")],
)
def test_it_says_why_it_keeps_nothing(operator: Client, run: Run, title: str, query: str, words: str) -> None:
    page = operator.post("/comparisons/save/", {"title": title, "query": query}, follow=True).content.decode()
    assert words in page
    assert not SavedComparison.objects.exists()


def test_it_gives_the_table_as_csv_with_units_in_the_header(viewer: Client, run: Run) -> None:
    response = viewer.get(f"/explore.csv?{QUERY}&metric=latency_p99")
    body = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    lines = list(csv.DictReader(body.splitlines()))
    assert len(lines) == 12
    assert float(lines[0]["p99 latency geometric mean [ns]"]) > 1000
    assert {line["n"] for line in lines} == {"3"}
    assert [bool(line["Ratio to the baseline"]) for line in lines[:2]] == [False, True]
    refused = viewer.get("/explore.csv?x=nonsense")
    assert (refused.status_code, "no factor" in refused.content.decode()) == (422, True)


def test_a_list_takes_as_many_queries_however_long(
    operator: Client, saved: SavedComparison, django_assert_num_queries: object
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            operator.get("/comparisons/")
        return len(queries)

    few = count()
    operator.post(f"/comparisons/{saved.pk}/copy/")
    operator.get("/comparisons/")  # its message is shown
    assert count() == few
