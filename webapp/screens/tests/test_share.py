"""Reports of saved comparisons, frozen numbers and links for people without an account."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from webapp.analysis.models import ComparisonLink, SavedComparison
from webapp.analysis.services import change_comparison, freeze_comparison, frozen
from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry, Role, User
from webapp.core.people import change_role, deactivate_user, reactivate_user, remove_user
from webapp.hosts.inventory.ceilings import Bound
from webapp.hosts.inventory.links import Interval
from webapp.imports.services import undo_import
from webapp.pictures.elements import SHAPES
from webapp.results.models import Result
from webapp.runs.models import Run
from webapp.screens.explore.answer import answer_to, packed
from webapp.screens.templatetags.notes import markdown
from webapp.screens.tests.test_explore import run, with_histograms  # noqa: F401 - fixture
from webapp.tests.factories.imports import an_import

QUERY = "run=1&x=iodepth&series=ioengine&panel=pattern"


@pytest.fixture
def saved(operator: Client, run: Run) -> SavedComparison:  # noqa: F811 - fixture
    owner = User.objects.get(username="olga")
    note = "**Firmware 1.2**, see [ticket](https://example.org/7)"
    return SavedComparison.objects.create(owner=owner, title="Engines", note=note, query=QUERY)


def report(client: Client, saved: SavedComparison) -> str:
    found = client.get(f"/comparisons/{saved.pk}/report/")
    assert found.status_code == 200
    return found.content.decode()


def new_link(operator: Client, saved: SavedComparison) -> str:
    answer = operator.post(f"/comparisons/{saved.pk}/links/", {"name": "a customer"})
    assert answer.headers["Location"].endswith("/report/#share-title")  # a new address is shown there, once
    found = re.search(r'id="shared-address">([^<]+)<', report(operator, saved))
    assert found
    return urlsplit(found.group(1)).path


def test_the_report_has_note_conclusions_charts_and_table(operator: Client, saved: SavedComparison) -> None:
    page = report(operator, saved)
    assert "<strong>Firmware 1.2</strong>" in page
    assert 'href="https://example.org/7"' in page
    assert page.count("<canvas") == 4
    assert "than io_uring" in page
    assert "kIOPS" in page


def test_the_report_and_the_list_name_the_filters(operator: Client, saved: SavedComparison) -> None:
    SavedComparison.objects.update(query=f"{QUERY}&run=2&factor.block_size=4k,128k&steadiness=steady&reference=1")
    filters = "Run 1, 2 · Block size 4k,128k · Steadiness steady · references included"
    assert f"Filters: {filters}." in report(operator, saved)
    assert filters in operator.get("/comparisons/").content.decode()
    SavedComparison.objects.update(query="x=iodepth&invalid=0&reference=1&reference=0")
    assert "Filters: none." in report(operator, saved)


def test_the_report_and_the_list_name_imports_by_their_titles(operator: Client, saved: SavedComparison) -> None:
    an_import(title="Vendor A")
    SavedComparison.objects.update(query="x=iodepth&import=1&import=7")
    assert "Filters: Import 1 “Vendor A”, 7." in report(operator, saved)
    assert "Import 1 “Vendor A”, 7" in operator.get("/comparisons/").content.decode()
    SavedComparison.objects.update(query="product=import:1/PM9A3&product=run:1")
    assert "Import 1 “Vendor A”: PM9A3, Run 1" in operator.get("/comparisons/").content.decode()


def test_the_time_of_frozen_numbers_is_in_utc_for_every_viewer(operator: Client, saved: SavedComparison) -> None:
    operator.post(f"/comparisons/{saved.pk}/freeze/")
    SavedComparison.objects.update(frozen_at=datetime(2026, 3, 1, 20, 0, tzinfo=UTC))
    operator.cookies["timezone"] = "Asia/Tokyo"
    assert "Numbers frozen on 2026-03-01 20:00 UTC." in report(operator, saved)


@pytest.mark.parametrize("view", ["latency", "timeline", "means&chart=heat"])
def test_a_frozen_report_keeps_its_numbers(operator: Client, saved: SavedComparison, view: str) -> None:
    with_histograms(Run.objects.get())
    SavedComparison.objects.update(query=f"{QUERY}&view={view}")
    operator.post(f"/comparisons/{saved.pk}/freeze/", follow=True)  # shows the message once
    before = re.sub(r'name="csrf[^>]+>', "", report(operator, saved))
    assert "Numbers frozen on" in before
    Result.objects.all().update(iops=1.0, latency=b"")
    assert re.sub(r'name="csrf[^>]+>', "", report(operator, saved)) == before
    operator.post(f"/comparisons/{saved.pk}/unfreeze/")
    now = report(operator, saved)
    assert "Numbers frozen on" not in now
    saved.refresh_from_db()
    assert (saved.frozen, saved.frozen_at) == (None, None)


def test_a_frozen_report_names_an_import_that_was_undone(operator: Client, saved: SavedComparison) -> None:
    table = an_import(title="Vendor A", text="pattern,block_size,iodepth,iops\nrandread,4k,1,500\n")
    SavedComparison.objects.update(query=f"x=iodepth&import={table.number}")
    operator.post(f"/comparisons/{saved.pk}/freeze/", follow=True)
    before = re.sub(r'name="csrf[^>]+>', "", report(operator, saved))
    assert "“Vendor A”" in before
    undo_import(table, by=None)
    assert re.sub(r'name="csrf[^>]+>', "", report(operator, saved)) == before


def test_numbers_that_were_frozen_without_filters_are_shown_with_those_of_the_query(
    operator: Client, saved: SavedComparison
) -> None:
    operator.post(f"/comparisons/{saved.pk}/freeze/")
    saved.refresh_from_db()
    numbers = msgspec.structs.replace(answer_to(saved), filters="")
    SavedComparison.objects.update(frozen=frozen(numbers))
    assert "Filters: Run 1." in report(operator, saved)


def sent(page: str, name: str) -> Any:
    """The data for a script of the page."""
    found = re.search(rf'<script id="{name}" type="application/json">(.*?)</script>', page)
    assert found
    return json.loads(found[1])


@pytest.mark.parametrize("frozen", [False, True])
def test_the_report_has_the_ceilings_and_references_of_explore(
    operator: Client, saved: SavedComparison, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    bound = Bound("storage1/scratch", 3.63e9, "PCI Express", Interval(3.2e9, 3.4e9, "a paper"))
    monkeypatch.setattr("webapp.analysis.known_ceilings.bounds_of", lambda moments, most: (bound,))
    made = an_import(title="Old drive", text="pattern,block_size,iodepth,mib_per_s\nrandread,4k,1,500\n")
    Result.objects.filter(origin__imported=made).update(reference=True)
    query = f"{QUERY}&metric=bytes_per_s&ceilings=on&lines=all"
    SavedComparison.objects.update(query=query)
    if frozen:
        operator.post(f"/comparisons/{saved.pk}/freeze/")
    explore, page = operator.get(f"/explore/?{query}").content.decode(), report(operator, saved)
    shown = sent(page, "compare-data")
    assert [line["name"] for line in shown["references"]] == ["Old drive (jobs not stated)"]
    assert [one["text"] for one in shown["ceilings"]] == ["storage1/scratch"]
    assert shown == sent(explore, "compare-data")
    for part in (
        "chart-ceilings",
        "chart-references",
        "3.63 GB/s at most, 3.20 GB/s to 3.40 GB/s in practice (a paper)",
    ):
        assert part in page
    drawn = operator.get(f"{new_link(operator, saved)}chart.svg").content.decode()
    assert "Ceiling of storage1/scratch: 3.63 GB/s" in drawn
    assert "Old drive (jobs not stated): 524 MB/s" in drawn


@pytest.mark.parametrize("frozen", [False, True])
def test_the_report_of_a_scatter_chart_is_a_scatter_chart(
    operator: Client, saved: SavedComparison, frozen: bool
) -> None:
    query = f"{QUERY}&chart=scatter&against=latency_mean"
    SavedComparison.objects.update(query=query)
    explore = operator.get(f"/explore/?{query}").content.decode()
    if frozen:
        operator.post(f"/comparisons/{saved.pk}/freeze/")
        Result.objects.update(iops=1.0, latency_mean_ns=1.0)
    assert sent(report(operator, saved), "scatter-data") == sent(explore, "scatter-data")


def test_the_query_of_a_frozen_comparison_does_not_change(operator: Client, saved: SavedComparison) -> None:
    operator.post(f"/comparisons/{saved.pk}/freeze/")
    given = {"title": "Other", "note": "", "query": f"{QUERY}&metric=latency_p99"}
    answer = operator.post(f"/comparisons/{saved.pk}/change/", given, follow=True)
    assert "are frozen" in answer.content.decode()
    operator.post(f"/comparisons/{saved.pk}/change/", given | {"query": QUERY})
    saved.refresh_from_db()
    assert (saved.title, saved.query) == ("Other", QUERY)


def test_a_change_that_began_before_the_freeze_is_refused(operator: Client, saved: SavedComparison) -> None:
    """Each request reads the comparison first; the second one to write must see what the first one wrote."""
    changing, freezing = (SavedComparison.objects.get(pk=saved.pk) for _ in range(2))
    owner = User.objects.get(username="olga")
    freeze_comparison(saved=freezing, numbers_of=packed, by=owner)
    with pytest.raises(Refusal, match="are frozen"):
        change_comparison(saved=changing, title="Engines", note="", query=f"{QUERY}&metric=latency_p99", by=owner)


def test_a_freeze_that_began_before_a_change_keeps_the_numbers_of_the_new_query(
    operator: Client, saved: SavedComparison
) -> None:
    changing, freezing = (SavedComparison.objects.get(pk=saved.pk) for _ in range(2))
    owner = User.objects.get(username="olga")
    query = f"{QUERY}&metric=latency_p99"
    change_comparison(saved=changing, title="Engines", note="", query=query, by=owner)
    freeze_comparison(saved=freezing, numbers_of=packed, by=owner)
    saved.refresh_from_db()
    assert saved.query == query
    assert answer_to(saved).comparison.metric == "latency_p99"


def test_nothing_is_frozen_without_results(operator: Client, saved: SavedComparison) -> None:
    SavedComparison.objects.update(query="run=99&x=iodepth")
    page = operator.post(f"/comparisons/{saved.pk}/freeze/", follow=True).content.decode()
    assert "has no results to freeze" in page


def test_numbers_of_another_version_are_said_to_be_unreadable(operator: Client, saved: SavedComparison) -> None:
    operator.post(f"/comparisons/{saved.pk}/freeze/")
    SavedComparison.objects.update(frozen=b"not zlib")
    assert "which this version cannot read" in report(operator, saved)


def test_a_link_shows_the_report_without_an_account_and_nothing_else(
    operator: Client, saved: SavedComparison, client: Client
) -> None:
    path = new_link(operator, saved)
    answer = client.get(path)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    assert answer["Referrer-Policy"] == "no-referrer"
    assert "than io_uring" in page
    assert "olga" not in page
    links = set(re.findall(r'<a [^>]*href="([^"]+)"', page))
    assert links == {"#main", "https://example.org/7"}
    for other in ("/explore/", "/explore.csv", f"/comparisons/{saved.pk}/report/", "/results/", "/"):
        assert client.get(other).status_code == 302, other
    assert client.post(path).status_code == 405


def test_a_link_gives_a_picture_and_a_frame_for_other_pages(
    operator: Client, saved: SavedComparison, client: Client
) -> None:
    path = new_link(operator, saved)
    image, frame = client.get(f"{path}chart.svg"), client.get(f"{path}frame/")
    assert image["Content-Type"] == "image/svg+xml"
    drawn = ElementTree.fromstring(image.content)
    texts = [element.text or "" for element in drawn.iter() if element.tag.endswith("text")]
    assert {"Engines", "io_uring (baseline)", "psync"} <= set(texts)
    assert any("than io_uring" in text for text in texts)
    assert b"<svg" in frame.content
    for answer in (image, frame):
        assert b"<script" not in answer.content
        assert b"olga" not in answer.content
        assert answer["Cache-Control"] == "no-store"
        assert answer["Referrer-Policy"] == "no-referrer"
        assert "default-src 'none'" in answer["Content-Security-Policy"]
        assert "script-src" not in answer["Content-Security-Policy"]


def test_only_the_frame_of_a_link_may_be_embedded(operator: Client, saved: SavedComparison, client: Client) -> None:
    path = new_link(operator, saved)
    frame = client.get(f"{path}frame/")
    assert "frame-ancestors *" in frame["Content-Security-Policy"]
    assert "X-Frame-Options" not in frame
    for other in (path, f"{path}chart.svg", "/login/"):
        answer = client.get(other)
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"], other
        assert answer["X-Frame-Options"] == "DENY"
    ComparisonLink.objects.update(revoked_at=timezone.now())
    for gone in (f"{path}chart.svg", f"{path}frame/"):
        answer = client.get(gone)
        assert answer.status_code == 404
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]


def test_text_of_people_is_text_in_a_picture(operator: Client, saved: SavedComparison, client: Client) -> None:
    SavedComparison.objects.update(title='</title><script>alert("a")</script>')
    path = new_link(operator, saved)
    for place in ("chart.svg", "frame/"):
        assert b"<script" not in client.get(f"{path}{place}").content


@pytest.mark.parametrize("view", ["latency", "timeline", "means&chart=heat&scale=log", "means&x=ioengine"])
def test_every_view_has_a_picture(operator: Client, saved: SavedComparison, client: Client, view: str) -> None:
    with_histograms(Run.objects.get())
    query = QUERY.replace("x=iodepth&series=ioengine", "series=iodepth") if "x=" in view else QUERY
    SavedComparison.objects.update(query=f"{query}&view={view}")
    image = client.get(f"{new_link(operator, saved)}chart.svg").content.decode()
    assert "<path" in image
    assert "NaN" not in image.replace("nan", "NaN")


def drawing(operator: Client, saved: SavedComparison, query: str, tag: str) -> list[ElementTree.Element]:
    """The elements of the picture with this tag."""
    SavedComparison.objects.update(query=query)
    answer = operator.get(f"{new_link(operator, saved)}chart.svg")
    assert answer.status_code == 200
    assert operator.get(f"{new_link(operator, saved)}frame/").status_code == 200
    return [one for one in ElementTree.fromstring(answer.content).iter() if one.tag.endswith(f"}}{tag}")]


LEGEND = 2  # marks of the legend, one for each I/O engine


def marks(paths: list[ElementTree.Element]) -> list[ElementTree.Element]:
    return [one for one in paths if one.get("d") in SHAPES]


def words(elements: list[ElementTree.Element]) -> str:
    return " ".join(element.text or "" for element in elements)


def test_entered_values_have_a_picture(operator: Client, saved: SavedComparison) -> None:
    form = {"name": "Nightly job", "unit": "min", "better": "lower", "differs": "host", "values": "old: 348\nnew: 30"}
    operator.post("/imports/values/", form)
    query = "import=1&x=imported&series=host&baseline=old&metric=Nightly job [min] lower is better"
    text = words(drawing(operator, saved, query, "text"))
    assert "300 min" in text  # of the axis
    assert "new showed ×0.09 in Nightly job against old (measured once)" in text


def test_a_picture_of_boxes_has_a_dot_for_each_repeat(operator: Client, saved: SavedComparison) -> None:
    results = Run.objects.get().results.count()
    assert len(drawing(operator, saved, f"{QUERY}&chart=box", "circle")) == results
    medians = [
        one
        for one in drawing(operator, saved, f"{QUERY}&chart=box", "path")
        if one.get("stroke-width") == "2" and "h" in one.get("d", "")
    ]
    assert len(medians) == len({*Run.objects.get().results.values_list("point_key")})


def test_a_picture_of_a_scatter_chart_has_both_metrics(operator: Client, saved: SavedComparison) -> None:
    query = f"{QUERY}&chart=scatter&against=latency_mean"
    assert "Mean latency" in words(drawing(operator, saved, query, "text"))
    points = {*Run.objects.get().results.values_list("point_key")}
    assert len(marks(drawing(operator, saved, query, "path"))) == len(points) + LEGEND


def test_a_picture_of_a_heat_map_has_its_numbers(operator: Client, saved: SavedComparison) -> None:
    query = f"{QUERY}&chart=heat"
    texts = [one.text or "" for one in drawing(operator, saved, query, "text")]
    comparison = operator.get(f"/explore/?{query}").context["comparison"]
    cells = [cell for panel in comparison.panels for series in panel.series for cell in series.cells]
    assert len(cells) >= 4
    for cell in cells:
        assert any(text.removesuffix(" ?") == cell.text for text in texts)


def test_a_picture_without_values_says_why(operator: Client, saved: SavedComparison) -> None:
    assert "No results match any more." in words(drawing(operator, saved, "run=99&x=iodepth", "text"))
    text = words(drawing(operator, saved, f"{QUERY}&view=latency", "text"))
    assert "No histogram is stored for" in text


def test_a_comparison_that_cannot_be_answered_says_so_in_the_picture(
    operator: Client, saved: SavedComparison, client: Client
) -> None:
    SavedComparison.objects.update(query="x=nothing")
    assert "There is no factor" in client.get(f"{new_link(operator, saved)}chart.svg").content.decode()


def test_forms_of_the_report_can_be_sent(operator: Client, saved: SavedComparison) -> None:
    """With no-referrer, browsers send `Origin: null`, which Django refuses."""
    assert operator.get(f"/comparisons/{saved.pk}/report/")["Referrer-Policy"] == "same-origin"


def test_the_address_is_shown_once_and_only_its_hash_is_stored(operator: Client, saved: SavedComparison) -> None:
    token = new_link(operator, saved).split("/")[2]
    again = report(operator, saved)
    assert token not in again
    assert "a customer" in again
    assert token not in str(ComparisonLink.objects.values_list().get())
    assert AuditEntry.objects.filter(action="comparison.link").count() == 1


def test_a_revoked_link_and_a_deleted_comparison_are_not_found(
    operator: Client, saved: SavedComparison, client: Client
) -> None:
    first, second = new_link(operator, saved), new_link(operator, saved)
    link = ComparisonLink.objects.order_by("pk")[0]
    operator.post(f"/comparisons/{saved.pk}/links/{link.pk}/revoke/")
    assert client.get(first).status_code == 404
    assert client.get(second).status_code == 200
    assert "revoked" in report(operator, saved)
    operator.post(f"/comparisons/{saved.pk}/delete/")
    assert client.get(second).status_code == 404
    assert client.get(f"/shared/{'0' * 64}/").status_code == 404


@pytest.mark.parametrize("end", [deactivate_user, remove_user, partial(change_role, role=Role.VIEWER)])
def test_the_links_of_a_person_end_with_the_account(
    operator: Client, admin: Client, saved: SavedComparison, client: Client, end: Callable[..., None]
) -> None:
    theirs, others = new_link(operator, saved), new_link(admin, saved)
    owner, by = User.objects.get(username="olga"), User.objects.get(username="anna")
    assert admin.get(f"/people/{owner.pk}/").context["links"] == 1
    end(user=owner, by=by)
    for address in (theirs, f"{theirs}chart.svg", f"{theirs}frame/"):
        assert client.get(address).status_code == 404
    assert client.get(others).status_code == 200
    assert [link.with_account for link in saved.links.order_by("pk")] == [True, False]
    assert "olga" in report(admin, saved)
    assert AuditEntry.objects.filter(action="comparison.link_revoke", actor=by).count() == 1
    reactivate_user(user=owner, by=by)
    assert client.get(theirs).status_code == 404


def test_only_the_owner_and_admins_share_and_freeze(
    admin: Client, viewer: Client, saved: SavedComparison, client: Client
) -> None:
    SavedComparison.objects.update(owner=User.objects.get(username="anna"))
    other = Client()
    other.force_login(User.objects.get(username="olga"))
    for path in ("links/", "freeze/"):
        page = other.post(f"/comparisons/{saved.pk}/{path}", {"name": "me"}, follow=True).content.decode()
        assert "copy it and change the copy" in page
        assert viewer.post(f"/comparisons/{saved.pk}/{path}").status_code == 403
    assert not ComparisonLink.objects.exists()
    assert "Create link" not in report(other, saved)
    assert "Create link" in report(admin, saved)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;"),
        ("[a](javascript:alert)", "[a](javascript:alert)"),
        ("![a](https://example.org/a.png)", ""),
        ("<https://example.org> \n*b*", "<em>b</em>"),
        ("| a |\n| --- |\n| b |", "<table>"),
        ("[a](data:text/html,b)", "[a](data:text/html,b)"),
    ],
)
def test_markdown_is_shown_without_anything_that_runs(text: str, shown: str) -> None:
    html = markdown(text)
    assert shown in html
    for bad in ("<script", "<img", 'href="javascript', 'href="data', "onclick"):
        assert bad not in html
