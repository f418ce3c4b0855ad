from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from webapp.hosts.models import EnrolmentToken
from webapp.screens.hosts.views import presence
from webapp.screens.tests import factories


def test_it_says_what_to_do_while_there_is_no_host(operator: Client) -> None:
    assert "Press “Add host”" in operator.get("/hosts/").content.decode()


def test_it_offers_a_viewer_no_button_to_add_a_host(viewer: Client) -> None:
    page = viewer.get("/hosts/").content.decode()
    assert "An operator can add one" in page
    assert 'action="/hosts/add/"' not in page


@pytest.mark.django_db
def test_it_tells_ready_working_silent_and_revoked_hosts_apart() -> None:
    ready = factories.make_host("a")
    silent = factories.make_host("b", last_seen_at=timezone.now() - timedelta(minutes=10))
    never = factories.make_host("c", last_seen_at=None)
    revoked = factories.make_host("d", state="revoked")
    assert [presence(ready, False).words, presence(ready, True).words] == ["Ready", "Working"]
    assert [presence(host, False).words for host in (silent, never, revoked)] == ["Silent", "Silent", "Revoked"]


def test_it_shows_targets_policy_and_inventory(operator: Client) -> None:
    host = factories.make_host()
    factories.make_snapshot(host)
    factories.make_drive(host)
    factories.make_target(host, "gone", present=False, problem="It is mounted at /mnt.")
    page = operator.get("/hosts/storage1/").content.decode()
    for text in ("S64GNE0R800123", "destroy", "It is mounted at /mnt.", "AMD EPYC 9354P", "252 GiB", "1.92 TB"):
        assert text in page


def test_it_shows_a_host_that_has_not_reported_yet(operator: Client) -> None:
    factories.make_host(capabilities={}, last_seen_at=None, worker_version="")
    page = operator.get("/hosts/storage1/").content.decode()
    assert "The policy file allows nothing yet" in page
    assert "The worker has not reported yet" in page


def test_it_makes_the_line_to_paste_with_a_token_that_works_once(operator: Client) -> None:
    response = operator.post("/hosts/add/", {"slug": "storage9"})
    page = response.content.decode()
    assert f"sweetspot-worker enrol --server {settings.PUBLIC_URL} --token " in page
    assert EnrolmentToken.objects.get().host_slug == "storage9"
    assert EnrolmentToken.objects.get().token_hash not in page
    assert response["Cache-Control"] == "no-store"


@pytest.mark.parametrize(("slug", "words"), [("storage1", "already a host"), ("no spaces", "letters, numbers")])
def test_it_refuses_a_name_that_is_taken_or_bad(operator: Client, slug: str, words: str) -> None:
    factories.make_host()
    response = operator.post("/hosts/add/", {"slug": slug})
    assert response.status_code == 400
    assert words in response.content.decode()
    assert not EnrolmentToken.objects.exists()


def test_it_takes_as_many_queries_for_many_hosts_as_for_one(queries_of: Callable[[str], int]) -> None:
    factories.make_target(factories.make_host())
    one = queries_of("/hosts/")
    for number in range(2, 6):
        factories.make_target(factories.make_host(f"storage{number}"))
    assert queries_of("/hosts/") == one
