import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from webapp.hosts import wheelhouse
from webapp.hosts.installer import worker_wheel
from webapp.hosts.models import EnrolmentToken, HostInventory, InventoryContent
from webapp.hosts.services import keep_log, record_inventory, rename_host
from webapp.runs.models import TargetLock
from webapp.screens.hosts.presence import presence
from webapp.tests.factories.hosts import a_host, an_inventory, storage1_drive, storage1_inventory, storage1_scratch
from webapp.tests.factories.plans import a_version, first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import end_attempt, first_look_run, start_trial
from webapp.trends.summaries import make_due
from webapp.trends.tests.measuring import Nights
from worker.contract.reports import LogLevel, LogLine, WorkerLog


def test_it_says_what_to_do_while_there_is_no_host(admin: Client) -> None:
    assert "Press “Add host”" in admin.get("/hosts/").content.decode()


def test_it_offers_a_viewer_no_button_to_add_a_host(viewer: Client) -> None:
    page = viewer.get("/hosts/").content.decode()
    assert "An admin can add one" in page
    assert 'action="/hosts/add/"' not in page


@pytest.mark.django_db
def test_it_distinguishes_ready_working_silent_and_revoked_hosts() -> None:
    ready = a_host("a")
    silent = a_host("b", last_seen_at=timezone.now() - timedelta(minutes=10))
    never = a_host("c", last_seen_at=None)
    revoked = a_host("d", state="revoked")
    assert presence(ready, None).words == "Ready"
    assert [presence(host, None).words for host in (silent, never, revoked)] == ["Away", "Away", "Revoked"]


def test_the_heading_of_the_list_says_what_needs_a_person_first(viewer: Client) -> None:
    def heading() -> str:
        return str(viewer.get("/hosts/").context["heading"])

    version = worker_wheel().version
    a_host("a", worker_version=version)
    assert heading() == "The host is ready"
    a_host("b", worker_version=version)
    assert heading() == "Both hosts are ready"
    a_host("c", worker_version="0.0.1")
    assert heading() == "All three hosts are ready, one has problems"
    a_host("d", last_seen_at=None)
    a_host("e", state="maintenance", worker_version=version)
    assert heading() == "One host is away, one is in maintenance, three are ready, one has problems"


def test_a_working_host_is_soon_shown_as_silent(operator: Client) -> None:
    host = a_host("storage1")
    run = first_look_run(first_look(), [storage1_scratch(host)])
    now = timezone.now()
    attempt = start_trial(run.trials.get(index=0), at=now - timedelta(seconds=40.5))
    pages = ("/hosts/", "/hosts/storage1/", "/hosts/storage1/manage/")
    with patch.object(timezone, "now", return_value=now):
        assert presence(host, attempt).words == "Working"
        host.last_seen_at = now - timedelta(minutes=2)  # before the order: it had less to say then
        host.save()
        for page in pages:
            assert ">Nothing heard for 40 s<" in operator.get(page).content.decode(), page
        assert operator.get("/hosts/").context["any_offline"]
        assert "nothing heard of storage1 for 40 s, lost in " in operator.get("/").content.decode()
        assert presence(host, None).words == "Ready"
        host.last_seen_at = now - timedelta(seconds=29)
        assert presence(host, attempt).words == "Working"


def test_it_shows_targets_policy_and_inventory(operator: Client) -> None:
    host = a_host("storage1")
    an_inventory(host)
    storage1_drive(host)
    storage1_scratch(host, "gone", present=False, problem="It is mounted at /mnt.")
    page = operator.get("/hosts/storage1/").content.decode()
    for text in ("S64GNE0R800123", "destroy", "It is mounted at /mnt.", "AMD EPYC 9354P", "252 GiB", "1.92 TB"):
        assert text in page


def test_it_shows_a_host_that_has_not_reported_yet(operator: Client) -> None:
    a_host("storage1", capabilities={}, last_seen_at=None, worker_version="")
    page = operator.get("/hosts/storage1/").content.decode()
    assert "The policy file allows no target yet" in page
    assert "The worker has not reported yet" in page


def test_it_creates_the_enrolment_command_with_a_one_time_token(admin: Client) -> None:
    response = admin.post("/hosts/add/line/", {"slug": "storage9"}, follow=True)
    page = response.content.decode()
    assert f"{settings.PUBLIC_URL}/worker/" in page
    assert "SWEETSPOT_TOKEN=" in page
    assert EnrolmentToken.objects.get().host_slug == "storage9"
    assert EnrolmentToken.objects.get().token_hash not in page
    assert response["Cache-Control"] == "no-store"


def test_it_says_where_the_packages_come_from(admin: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheelhouse, "FOLDER", tmp_path)
    page = admin.post("/hosts/add/line/", {"slug": "storage9"}, follow=True).content.decode()
    assert f"this server has no wheelhouse (<code>{wheelhouse.COMMAND}</code>" in page
    monkeypatch.setattr(wheelhouse, "download", lambda *_: None)
    wheelhouse.build()
    page = admin.post("/hosts/add/line/", {"slug": "storage8"}, follow=True).content.decode()
    assert "from this server only" in page
    assert wheelhouse.COMMAND not in page


@pytest.mark.parametrize(("slug", "words"), [("storage1", "already exists"), ("no spaces", "lowercase letters")])
def test_it_refuses_a_name_that_is_taken_or_bad(admin: Client, slug: str, words: str) -> None:
    a_host("storage1")
    response = admin.post("/hosts/add/line/", {"slug": slug})
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not EnrolmentToken.objects.exists()


def test_it_takes_as_many_queries_for_many_hosts_as_for_one(queries_of: Callable[[str], int]) -> None:
    storage1_scratch(a_host("storage1"))
    one = queries_of("/hosts/")
    for number in range(2, 6):
        storage1_scratch(a_host(f"storage{number}"))
    assert queries_of("/hosts/") == one


def test_the_list_shows_problems_of_hosts(operator: Client) -> None:
    host = a_host(
        "storage1", worker_version="0.0.1", clock_ahead_s=90.0, policy_problem="policy.toml, line 3: no such key."
    )
    an_inventory(host)
    storage1_scratch(host, problem="It is mounted at /mnt.", present=False)
    calm = a_host("storage2", worker_version=worker_wheel().version)
    storage1_scratch(calm)
    listed = operator.get("/hosts/")
    page = listed.content.decode()
    for words in ("0.0.1", "90 s ahead of", "line 3: no such key", "It is mounted at /mnt.", "6.1.0-25-amd64"):
        assert words in page
    assert [bool(row.problems) for row in listed.context["rows"]] == [True, False]


def test_it_shows_the_activity_of_each_host_and_the_target_in_use(operator: Client) -> None:
    target = storage1_scratch(a_host("storage1"))
    run = first_look_run(first_look(), [target], repeats=1)
    attempt = start_trial(run.trials.get(index=2))
    TargetLock.objects.create(lock_key=target.lock_keys[0], attempt=attempt)
    assert "run 1</a>, trial 3 on scratch" in operator.get("/hosts/").content.decode()
    assert 'in use by <a href="/runs/1/">run 1</a>' in operator.get("/hosts/storage1/").content.decode()


def test_it_says_which_targets_share_drives(operator: Client) -> None:
    array = storage1_scratch(a_host("storage1"), lock_keys=["wwn-1", "wwn-2"])
    storage1_scratch(a_host("storage2"), "member", lock_keys=["wwn-2"])
    assert "shares drives with storage2/member" in operator.get("/hosts/storage1/").content.decode()
    array.lock_keys = ["wwn-1"]
    array.save()
    assert "shares drives" not in operator.get("/hosts/storage1/").content.decode()


def test_it_shows_the_history_of_a_host(operator: Client) -> None:
    host = a_host("storage1")
    an_inventory(host)
    newer = msgspec.structs.replace(storage1_inventory(), memory_bytes=17)
    record_inventory(host, newer, at=timezone.now() + timedelta(seconds=1))
    rename_host(host=host, slug="rack4", by=None)
    page = operator.get("/hosts/rack4/").content.decode()
    for words in ("First inventory", "memory in bytes was 270,582,939,648, is 17", "The former name is storage1."):
        assert words in page


def test_it_shows_the_log_with_a_link_to_the_trial_and_filters_it(operator: Client) -> None:
    host = a_host("storage1")
    run = first_look_run(first_look(), [storage1_scratch(host)], repeats=1)
    attempt = start_trial(run.trials.get(index=1))
    lines = (
        LogLine(number=1, at=1.0, level=LogLevel.INFO, text="Worker is ready <script>"),
        LogLine(number=2, at=2.0, level=LogLevel.ERROR, text="fio broke", attempt=str(attempt.pk)),
    )
    keep_log(host=host, shipped=WorkerLog(session="s", lines=lines))
    page = operator.get("/hosts/storage1/").content.decode()
    assert "Worker is ready &lt;script&gt;" in page
    assert '<a href="/runs/1/trials/2/">run 1, trial 2</a>' in page
    assert "Worker is ready" not in operator.get("/hosts/storage1/?level=warning").content.decode()
    tail = operator.get("/hosts/storage1/log/").json()
    assert [line["text"] for line in tail["lines"]] == ["Worker is ready <script>", "fio broke"]
    after = operator.get(f"/hosts/storage1/log/?after={tail['last']}").json()
    assert after == {"lines": [], "last": tail["last"]}
    assert operator.get("/api/v1/hosts/storage1/log?level=error").json()["count"] == 1


def test_it_takes_as_many_queries_for_a_host_with_much_as_with_little(queries_of: Callable[[str], int]) -> None:
    host = a_host("storage1")
    run = first_look_run(first_look(), [storage1_scratch(host)], repeats=1, state="done")
    attempt = start_trial(run.trials.get(index=0))
    end_attempt(attempt)
    an_inventory(host)
    made = LogLine(number=1, at=1.0, level=LogLevel.INFO, text="x", attempt=str(attempt.pk))
    keep_log(host=host, shipped=WorkerLog(session="s", lines=(made,)))
    one = queries_of("/hosts/storage1/")
    keep_log(host=host, shipped=WorkerLog(session="t", lines=(made,) * 1))
    for number in range(3):
        storage1_scratch(host, f"more{number}")
        an_inventory(host)
    assert queries_of("/hosts/storage1/") == one


def test_it_compares_two_inventories_that_the_address_names(operator: Client) -> None:
    host = a_host("storage1")
    assert "has not reported yet" in operator.get("/hosts/storage1/differences/").content.decode()
    first = an_inventory(host)
    assert "has not changed since the first" in operator.get("/hosts/storage1/differences/").content.decode()
    newer = msgspec.structs.replace(storage1_inventory(), memory_bytes=17)
    record_inventory(host, newer, at=timezone.now() + timedelta(seconds=1))
    second = HostInventory.objects.latest("taken_at")
    address = f"/hosts/storage1/differences/?from={first.pk}&to={second.pk}"
    assert address.replace("&", "&amp;") in operator.get("/hosts/storage1/").content.decode()
    for page in (address, "/hosts/storage1/differences/", "/hosts/storage1/differences/?from=x&to=999"):
        text = operator.get(page).content.decode()
        assert re.search(r"memory bytes</th>\s*<td[^>]*>270,582,939,648</td>\s*<td[^>]*>17</td>", text), page
    assert "These inventories are equal" in operator.get(f"{address}&from={second.pk}").content.decode()
    rename_host(host=host, slug="rack4", by=None)
    assert operator.get(address)["Location"] == address.replace("storage1", "rack4")


def test_a_run_says_whether_its_host_has_changed_since_the_run_before(operator: Client) -> None:
    host = a_host("storage1")
    target, version = storage1_scratch(host), first_look()
    first = an_inventory(host)
    for _ in range(2):
        finish_run(first_look_run(version, [target], repeats=1, started_at=timezone.now()))
    assert "is unchanged since its previous run 1" in operator.get("/runs/2/").content.decode()
    assert "is unchanged since" not in operator.get("/runs/1/").content.decode()
    newer = InventoryContent.objects.create(digest="f" * 64, facts={**first.content.facts, "memory_bytes": 17})
    second = HostInventory.objects.create(host=host, content=newer, taken_at=timezone.now())
    finish_run(first_look_run(version, [target], repeats=1, started_at=timezone.now()))
    text = operator.get("/runs/3/").content.decode()
    assert "has changed since its previous run 2" in text
    assert f"differences/?from={first.pk}&amp;to={second.pk}" in text


def test_a_row_of_a_target_has_its_most_serious_trend_and_the_run_of_the_last_value(operator: Client) -> None:
    nights = Nights(a_version(slug="nightly"), storage1_scratch(a_host("storage1")))
    for level in [1000] * 14 + [800] * 4:
        newest = nights.run(level)
    storage1_drive(nights.target.host)
    make_due(60)
    rows = {row.target.slug: row.trend for row in operator.get("/hosts/storage1/").context["target_rows"]}
    assert rows["nvme0"] is None
    trend = rows["scratch"]
    assert (trend.run, trend.tone, trend.change) == (newest.number, "slower", "▼ 20 %")


def test_rows_of_targets_take_as_many_queries_for_many_as_for_one(queries_of: Callable[[str], int]) -> None:
    host = a_host("storage1")
    storage1_scratch(host)
    one = queries_of("/hosts/storage1/")
    for number in range(3):
        storage1_scratch(host, f"scratch{number}")
    assert queries_of("/hosts/storage1/") == one


def test_engines_are_folded_and_one_host_alone_is_not_selected(operator: Client) -> None:
    host = a_host("alone")
    host.capabilities = {"engines": {"sysbench": {"version": "sysbench 1.0.20"}, "fio": {"version": "fio-3.33"}}}
    host.save()
    page = " ".join(operator.get("/hosts/").content.decode().split())
    assert "<summary>2 engines</summary>" in page
    assert "sysbench fileio 1.0.20" in page
    assert "fio 3.33" in page
    assert "Compare selected" not in page
    assert "select-row" not in page
    a_host("second")
    page = operator.get("/hosts/").content.decode()
    assert "Compare selected" in page
    assert 'aria-label="Select second"' in page
