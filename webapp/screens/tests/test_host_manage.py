"""The page with everything that may be done with a host."""

import pytest
from django.test import Client

from webapp.core.models import AuditEntry
from webapp.hosts.models import EnrolmentToken, Host, HostState
from webapp.hosts.services import begin_maintenance, issue_enrolment_token, rename_host, revoke_host
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run


@pytest.fixture
def host(db: None) -> Host:
    return a_host("storage1")


def text_of(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_it_offers_each_role_what_it_may_do(viewer: Client, operator: Client, admin: Client, host: Host) -> None:
    pages = [text_of(client, "/hosts/storage1/manage/") for client in (viewer, operator, admin)]
    assert ["Rename storage1" in page for page in pages] == [False, True, True]
    assert ["Revoke the token of storage1" in page for page in pages] == [False, False, True]


def test_it_renames_and_leads_on_from_the_old_address(operator: Client, host: Host) -> None:
    answer = operator.post("/hosts/storage1/rename/", {"slug": "rack4"}, follow=True)
    assert answer.redirect_chain[-1][0] == "/hosts/rack4/"
    assert "storage1 is now called rack4" in answer.content.decode()
    for page in ("/hosts/storage1/", "/hosts/storage1/manage/"):
        assert operator.get(page)["Location"] == page.replace("storage1", "rack4")
    api = operator.get("/api/v1/hosts/storage1").json()
    assert api["slug"] == "rack4"


def test_it_says_at_the_field_why_a_name_cannot_be(operator: Client, host: Host) -> None:
    a_host("storage2")
    answer = operator.post("/hosts/storage1/rename/", {"slug": "storage2"})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert 'id="rename-problem">A host called storage2 already exists' in page
    assert 'value="storage2"' in page
    assert Host.objects.filter(slug="storage1").exists()


def test_it_asks_for_an_inventory_and_says_at_the_button_why_not(operator: Client, host: Host) -> None:
    page = text_of(operator, "/hosts/storage1/manage/")
    assert "Take the inventory of storage1 now" in page
    Host.objects.update(last_seen_at=None)
    answer = operator.post("/hosts/storage1/inventory/")
    assert answer.status_code == 422
    assert "is offline" in answer.content.decode()
    assert not AuditEntry.objects.filter(action="host.inventory").exists()


def test_it_shows_maintenance_wherever_the_host_appears(operator: Client, host: Host) -> None:
    target = storage1_scratch(host)
    version = first_look()
    first_look_run(version, [target], repeats=1, state="done")
    operator.post("/hosts/storage1/maintenance/", {"note": "new drives till noon"})
    for address in ("/hosts/", "/hosts/storage1/", "/plans/first-look/", "/runs/"):
        page = text_of(operator, address).lower()
        assert "maintenance" in page, address
        assert "new drives till noon" in page, address
    operator.post("/hosts/storage1/maintenance/end/")
    host.refresh_from_db()
    assert host.state == HostState.ACTIVE
    again = operator.post("/hosts/storage1/maintenance/end/", follow=True).content.decode()
    assert "was not in maintenance; nothing was changed" in again


def test_it_names_the_host_and_the_open_run_before_it_revokes(admin: Client, host: Host) -> None:
    run = first_look_run(first_look(), [storage1_scratch(host)], repeats=1)
    page = text_of(admin, "/hosts/storage1/manage/")
    assert "Revoke the token of storage1 now" in page
    assert f"run {run.number}</a>. Waiting trials on this host are cancelled" in page
    said = admin.post("/hosts/storage1/revoke/", follow=True).content.decode()
    assert "The token of storage1 is revoked" in said
    assert Run.objects.get().state == "failed"
    assert "was revoked before" in admin.post("/hosts/storage1/revoke/", follow=True).content.decode()


def test_it_asks_for_a_new_token_once(admin: Client, host: Host) -> None:
    assert "fetches a new token" in admin.post("/hosts/storage1/rotate/", follow=True).content.decode()
    assert "A new token was already requested" in admin.post("/hosts/storage1/rotate/", follow=True).content.decode()
    assert "Requested" in text_of(admin, "/hosts/storage1/manage/")


def test_it_removes_only_what_was_named_and_keeps_what_was_measured(admin: Client, host: Host) -> None:
    run = first_look_run(first_look(), [storage1_scratch(host)], repeats=1)
    finish_run(run)
    wrong = admin.post("/hosts/storage1/remove/", {"typed": "storage"})
    assert wrong.status_code == 422
    assert "type its exact name" in wrong.content.decode()
    admin.post("/hosts/storage1/remove/", {"typed": "storage1"})
    assert "storage1 is removed and its token is revoked" in text_of(admin, "/hosts/storage1/")
    assert "storage1" not in text_of(admin, "/hosts/")
    assert "/hosts/storage1/" in text_of(admin, "/hosts/?removed=1")
    assert "storage1/scratch" in text_of(admin, "/runs/1/")
    assert "io_uring" in text_of(admin, "/results/?run=1")
    admin.post("/hosts/storage1/bring-back/")
    assert "/hosts/storage1/" in text_of(admin, "/hosts/")


def test_it_deletes_a_host_that_measured_nothing(admin: Client, host: Host) -> None:
    assert "This cannot be undone" in text_of(admin, "/hosts/storage1/manage/")
    answer = admin.post("/hosts/storage1/remove/", {"typed": "storage1"}, follow=True)
    assert "storage1 is deleted" in answer.content.decode()
    assert admin.get("/hosts/storage1/").status_code == 404


def test_it_makes_a_line_to_enrol_the_same_host_again(admin: Client, host: Host) -> None:
    revoke_host(host=host, by=None)
    page = admin.post("/hosts/add/line/", {"again": "storage1"}, follow=True).content.decode()
    assert "Enrol storage1 again" in page
    assert EnrolmentToken.objects.get().host == host


def test_it_lists_open_lines_and_withdraws_one(admin: Client, viewer: Client, host: Host) -> None:
    issue_enrolment_token(by=None, slug="storage7")
    line = EnrolmentToken.objects.get()
    assert "storage7" in text_of(admin, "/hosts/add/")
    assert "storage7" not in text_of(viewer, "/hosts/add/")
    state = f"/hosts/add/{line.reference}/state/"
    assert admin.get(state).json()["state"] == "waiting"
    assert "is revoked" in admin.post(f"/hosts/add/{line.reference}/withdraw/", follow=True).content.decode()
    assert admin.get(state).json()["state"] == "expired"
    assert "already used" in admin.post(f"/hosts/add/{line.reference}/withdraw/", follow=True).content.decode()
    assert admin.get("/hosts/add/0123456789abcdef/state/").status_code == 404


def test_it_does_the_same_over_the_api(admin: Client, host: Host) -> None:
    def call(method: str, what: str, **body: str) -> int:
        sent = getattr(admin, method)(f"/api/v1/hosts/{what}", body, content_type="application/json")
        return int(sent.status_code)

    assert call("post", "storage1/maintenance", note="drives") == 200
    assert admin.get("/api/v1/hosts/storage1").json()["maintenance_note"] == "drives"
    assert call("delete", "storage1/maintenance") == 200
    assert call("post", "storage1/rename", slug="No") == 422
    assert call("post", "storage1/rename", slug="rack4") == 200
    assert call("post", "storage1/rotate-token") == 200
    assert call("post", "rack4/revoke", confirm="rack5") == 422
    assert call("post", "rack4/revoke", confirm="rack4") == 200
    assert call("delete", "rack4", confirm="rack4") == 200
    assert not Host.objects.exists()


def test_it_says_in_the_plan_which_hosts_rest(operator: Client, host: Host) -> None:
    storage1_scratch(host)
    first_look()
    begin_maintenance(host=host, note="firmware", by=None)
    rename_host(host=host, slug="rack4", by=None)
    page = text_of(operator, "/plans/first-look/")
    assert "Not available now" in page
    assert "rack4" in page
