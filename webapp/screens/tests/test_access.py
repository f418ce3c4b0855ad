"""Who may see and do what, over every address of the pages."""

import pytest
from django.test import Client
from django.urls import reverse

from webapp.runs.models import Run
from webapp.screens.tests import factories
from webapp.screens.urls import urlpatterns

ARGUMENTS = {"slug": "storage1", "number": 1, "index": 0}
OPEN = {"login"}
ACTIONS = {"logout", "add_host", "start_plan", "cancel_run"}


def address(name: str) -> str:
    wanted = next(pattern for pattern in urlpatterns if pattern.name == name).pattern.converters
    slug = "first-look" if "plan" in name else "storage1"
    return reverse(name, kwargs={key: slug if key == "slug" else ARGUMENTS[key] for key in wanted})


NAMES = [str(pattern.name) for pattern in urlpatterns]
PAGES = [name for name in NAMES if name not in OPEN | ACTIONS]


@pytest.fixture
def run(db: None) -> Run:
    run = factories.make_run(factories.make_version(), [factories.make_target(factories.make_host())])
    factories.finish_run(run)
    return run


@pytest.mark.django_db
@pytest.mark.parametrize("name", [name for name in NAMES if name not in OPEN | {"logout"}])
def test_it_sends_who_is_not_logged_in_to_the_log_in_page(client: Client, name: str) -> None:
    for response in (client.get(address(name)), client.post(address(name))):
        assert response.status_code == 302
        assert response["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("name", PAGES)
def test_it_shows_every_page_to_a_viewer(viewer: Client, run: Run, name: str) -> None:
    assert viewer.get(address(name), follow=True).status_code == 200


@pytest.mark.parametrize("name", sorted(ACTIONS - {"logout"}))
def test_it_refuses_a_viewer_in_words_and_changes_nothing(viewer: Client, run: Run, name: str) -> None:
    response = viewer.post(address(name))
    assert response.status_code == 403
    assert "Your role is viewer" in response.content.decode()
    assert Run.objects.count() == 1


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_it_changes_nothing_by_get(operator: Client, name: str) -> None:
    assert operator.get(address(name)).status_code == 405


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_it_refuses_a_form_without_its_csrf_token(name: str, db: None) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(factories.make_user())
    response = client.post(address(name))
    assert response.status_code == 403
    assert "out of date" in response.content.decode()


@pytest.mark.django_db
def test_it_logs_in_and_out(client: Client) -> None:
    factories.make_user()
    wrong = client.post(reverse("login"), {"username": "olga", "password": "wrong"})
    assert "do not belong together" in wrong.content.decode()
    right = client.post(reverse("login"), {"username": "olga", "password": factories.PASSWORD})
    assert right["Location"] == reverse("overview")
    assert client.post(reverse("logout"))["Location"] == reverse("login")
    assert client.get(reverse("overview")).status_code == 302


def test_it_says_in_words_that_an_address_leads_nowhere(operator: Client) -> None:
    response = operator.get("/runs/99/")
    assert response.status_code == 404
    assert "nothing at this address" in response.content.decode()
