"""Admins manage people; everybody manages their own account."""

import re
from datetime import datetime, timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.test import Client
from django.urls import reverse

from webapp.core.models import ApiToken, AuditEntry, Role, User
from webapp.core.services import create_api_token
from webapp.core.throttle import MAX_FOR_ACCOUNT
from webapp.hosts.models import EnrolmentToken
from webapp.tests.factories.people import PASSWORD, a_user

NEW = "clammy-orbit-ferret"


@pytest.fixture
def me(db: None) -> User:
    return a_user("anna", Role.ADMIN)


@pytest.fixture
def admin(me: User) -> Client:
    client = Client()
    client.force_login(me)
    return client


def link_in(text: str) -> str:
    found = re.search(r"http://testserver(/set-password/[^\s<]+)", text)
    assert found
    return found.group(1)


def log_in(name: str, password: str) -> Client:
    client = Client()
    client.post(reverse("login"), {"username": name, "password": password})
    return client


def is_in(client: Client) -> bool:
    return client.get(reverse("account")).status_code == 200


def test_an_admin_connects_an_account_if_there_is_an_external_log_in(admin: Client, settings: LazySettings) -> None:
    olga = a_user("olga")
    page, connect = reverse("person", args=[olga.pk]), reverse("connect_person", args=[olga.pk])
    assert connect not in admin.get(page).content.decode()
    settings.OIDC_ISSUER = "https://id.example"
    assert connect in admin.get(page).content.decode()
    assert "with the exact name olga" in admin.post(connect, follow=True).content.decode()
    assert connect not in admin.get(page).content.decode()


def test_it_adds_a_person_who_sets_a_password_by_a_link_that_works_once(admin: Client) -> None:
    shown = admin.post(reverse("add_person"), {"username": "olga", "role": "operator"}, follow=True)
    assert shown["Cache-Control"] == "no-store"
    link = link_in(shown.content.decode())
    browser = Client()
    form = browser.get(link)
    assert link.split("/")[3] not in form["Location"]
    assert "olga" in browser.get(form["Location"]).content.decode()
    done = browser.post(form["Location"], {"new_password1": NEW, "new_password2": NEW})
    assert done["Location"] == reverse("login")
    assert is_in(log_in("olga", NEW))
    assert "already used" in Client().get(link, follow=True).content.decode()
    assert AuditEntry.objects.filter(action="user.password", actor__username="olga", object_type="user").exists()


def test_a_password_link_ends_after_a_day(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = admin.post(reverse("add_person"), {"username": "olga", "role": "operator"}, follow=True)
    link = link_in(shown.content.decode())
    for hours, good in ((23, True), (25, False)):
        later = datetime.now() + timedelta(hours=hours)  # noqa: DTZ005 - as Django's generator
        monkeypatch.setattr(PasswordResetTokenGenerator, "_now", lambda _, at=later: at)
        assert ("already used" not in Client().get(link, follow=True).content.decode()) is good


@pytest.mark.parametrize("weak", ["short", "password1234"])
def test_it_refuses_a_weak_first_password_at_its_field(admin: Client, weak: str) -> None:
    made = admin.post(reverse("add_person"), {"username": "olga", "role": "viewer"}, follow=True)
    link = link_in(made.content.decode())
    browser = Client()
    address = browser.get(link)["Location"]
    refused = browser.post(address, {"new_password1": weak, "new_password2": weak})
    assert refused.status_code == 200
    assert "password" in refused.content.decode()
    assert not User.objects.get(username="olga").has_usable_password()


def test_it_lets_nobody_use_the_link_of_an_account_that_is_off(admin: Client) -> None:
    made = admin.post(reverse("add_person"), {"username": "olga", "role": "viewer"}, follow=True)
    link = link_in(made.content.decode())
    User.objects.filter(username="olga").update(is_active=False)
    assert "Ask an admin" in Client().get(link, follow=True).content.decode()


def test_it_says_at_the_field_that_a_name_is_taken(admin: Client) -> None:
    refused = admin.post(reverse("add_person"), {"username": "Anna", "role": "viewer"})
    assert refused.status_code == 422
    assert "There is already a person called Anna" in refused.content.decode()
    assert User.objects.count() == 1


def test_it_ends_sessions_and_tokens_of_an_account_that_is_switched_off(admin: Client) -> None:
    olga = a_user("olga")
    session = log_in("olga", PASSWORD)
    script = Client(headers={"Authorization": f"Bearer {create_api_token(user=olga, name='nightly')}"})
    assert is_in(session)
    assert script.get("/api/v1/runs").status_code == 200
    admin.post(reverse("deactivate_person", args=[olga.pk]))
    assert not is_in(session)
    assert script.get("/api/v1/runs").status_code == 401
    assert not is_in(log_in("olga", PASSWORD))
    admin.post(reverse("reactivate_person", args=[olga.pk]))
    assert not is_in(session)
    assert script.get("/api/v1/runs").status_code == 401
    assert is_in(log_in("olga", PASSWORD))


def test_a_password_link_of_an_account_that_was_switched_off_stays_invalid(admin: Client) -> None:
    made = admin.post(reverse("add_person"), {"username": "olga", "role": "viewer"}, follow=True)
    olga = User.objects.get(username="olga")
    admin.post(reverse("deactivate_person", args=[olga.pk]))
    admin.post(reverse("reactivate_person", args=[olga.pk]))
    assert "already used" in Client().get(link_in(made.content.decode()), follow=True).content.decode()


def test_a_new_password_ends_all_other_sessions_and_tokens(me: User) -> None:
    mine, thief = log_in("anna", PASSWORD), log_in("anna", PASSWORD)
    script = Client(headers={"Authorization": f"Bearer {create_api_token(user=me, name='nightly')}"})
    assert is_in(thief)
    changed = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    assert mine.post(reverse("change_password"), changed).status_code == 302
    assert is_in(mine)
    assert not is_in(thief)
    assert script.get("/api/v1/runs").status_code == 401


def test_an_admins_reset_ends_sessions_and_tokens(admin: Client) -> None:
    olga = a_user("olga")
    session = log_in("olga", PASSWORD)
    script = Client(headers={"Authorization": f"Bearer {create_api_token(user=olga, name='nightly')}"})
    admin.post(reverse("reset_password", args=[olga.pk]))
    assert not is_in(session)
    assert script.get("/api/v1/runs").status_code == 401


def test_a_stolen_session_cannot_guess_the_password(me: User) -> None:
    thief = log_in("anna", PASSWORD)
    wrong = {"old_password": "wrong", "new_password1": NEW, "new_password2": NEW}
    answers = [thief.post(reverse("change_password"), wrong).status_code for _ in range(MAX_FOR_ACCOUNT + 1)]
    assert answers == [422] * MAX_FOR_ACCOUNT + [429]
    assert thief.post(reverse("change_password"), {**wrong, "old_password": PASSWORD}).status_code == 429


def test_it_removes_a_person_and_the_name_only_if_it_is_typed(admin: Client) -> None:
    olga = a_user("olga")
    session = log_in("olga", PASSWORD)
    script = Client(headers={"Authorization": f"Bearer {create_api_token(user=olga, name='nightly')}"})
    said = admin.post(reverse("remove_person", args=[olga.pk]), follow=True).content.decode()
    assert "olga is removed" in said
    assert "Restore olga" in said
    assert not is_in(session)
    assert script.get("/api/v1/runs").status_code == 401
    assert "olga" not in admin.get(reverse("people")).content.decode()
    assert "olga" in admin.get(reverse("people") + "?show=left").content.decode()
    address = reverse("anonymise_person", args=[olga.pk])
    assert "Nothing was changed" in admin.post(address, {"confirm": "Olga"}).content.decode()
    page = admin.post(address, {"confirm": "olga"}, follow=True).content.decode()
    assert "The name is removed" in page
    assert f"former-person-{olga.pk}" in page
    assert "olga" not in page
    assert "olga" not in admin.get(reverse("audit")).content.decode()


def test_a_removed_person_returns_with_a_new_link(admin: Client) -> None:
    olga = a_user("olga")
    admin.post(reverse("remove_person", args=[olga.pk]))
    assert "new password link" in admin.post(reverse("reactivate_person", args=[olga.pk]), follow=True).content.decode()
    assert not is_in(log_in("olga", PASSWORD))


def test_it_says_why_the_last_admin_stays(admin: Client, me: User) -> None:
    refused = admin.post(reverse("deactivate_person", args=[me.pk]), {"acknowledged": "on"})
    assert refused.status_code == 422
    assert "anna is the only admin who can log in" in refused.content.decode()
    refused = admin.post(reverse("change_role", args=[me.pk]), {"role": "viewer", "acknowledged": "on"})
    assert "Make somebody else an admin first" in refused.content.decode()
    assert is_in(admin)


def test_an_admin_who_gave_up_the_role_gets_the_overview(admin: Client, me: User) -> None:
    a_user("second", Role.ADMIN)
    address = reverse("change_role", args=[me.pk])
    assert "Tick the box" in admin.post(address, {"role": "viewer"}).content.decode()
    assert admin.post(address, {"role": "viewer", "acknowledged": "on"})["Location"] == reverse("overview")
    assert admin.get(reverse("people")).status_code == 403


def test_it_takes_an_account_back_with_a_new_link(admin: Client) -> None:
    olga = a_user("olga")
    session = log_in("olga", PASSWORD)
    made = admin.post(reverse("reset_password", args=[olga.pk]), follow=True)
    assert "/set-password/" in made.content.decode()
    assert not is_in(session)
    assert not is_in(log_in("olga", PASSWORD))


def test_it_changes_ones_own_password_and_ends_the_other_sessions(me: User) -> None:
    here, there = log_in("anna", PASSWORD), log_in("anna", PASSWORD)
    address = reverse("change_password")
    wrong = here.post(address, {"old_password": "x", "new_password1": NEW, "new_password2": NEW})
    assert wrong.status_code == 422
    assert is_in(there)
    here.post(address, {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW})
    assert is_in(here)
    assert not is_in(there)
    assert is_in(log_in("anna", NEW))


def test_it_shows_a_token_once_and_lists_it_by_its_name(admin: Client) -> None:
    shown = admin.post(reverse("create_token"), {"name": "nightly job"}, follow=True)
    plain = re.search(r"[0-9a-f]{64}", shown.content.decode())
    assert plain
    assert shown["Cache-Control"] == "no-store"
    assert Client(headers={"Authorization": f"Bearer {plain.group()}"}).get("/api/v1/runs").status_code == 200
    listed = admin.get(reverse("account")).content.decode()
    assert "nightly job" in listed
    assert plain.group() not in listed
    assert "required" in admin.post(reverse("create_token"), {"name": " "}).content.decode()


def test_a_person_gives_a_token_the_right_to_arm(admin: Client, me: User) -> None:
    admin.post(reverse("create_token"), {"name": "plain"})
    admin.post(reverse("create_token"), {"name": "arming", "may_arm": "on"})
    assert dict(ApiToken.objects.values_list("name", "may_arm")) == {"plain": False, "arming": True}
    details = AuditEntry.objects.filter(action="token.create", actor=me).values_list("detail", flat=True)
    assert {detail["name"]: detail["may_arm"] for detail in details} == {"plain": False, "arming": True}
    cells = re.findall(r"<td>(yes|no)</td>", admin.get(reverse("account")).content.decode())
    assert sorted(cells) == ["no", "yes"]


def test_it_revokes_ones_own_token_and_nobody_elses(admin: Client, me: User) -> None:
    olga = a_user("olga")
    plain = create_api_token(user=olga, name="nightly")
    token = ApiToken.objects.get()
    assert admin.post(reverse("revoke_token", args=[token.pk])).status_code == 404
    hers = log_in("olga", PASSWORD)
    hers.post(reverse("revoke_token", args=[token.pk]))
    assert Client(headers={"Authorization": f"Bearer {plain}"}).get("/api/v1/runs").status_code == 401
    assert "was already revoked" in hers.post(reverse("revoke_token", args=[token.pk]), follow=True).content.decode()


def test_it_lets_admins_see_and_revoke_tokens_of_others(admin: Client) -> None:
    olga = a_user("olga")
    create_api_token(user=olga, name="nightly")
    token = ApiToken.objects.get()
    assert "nightly" in admin.get(reverse("person", args=[olga.pk])).content.decode()
    admin.post(reverse("revoke_persons_token", args=[olga.pk, token.pk]))
    assert "has no API token" in admin.get(reverse("person", args=[olga.pk])).content.decode()


def test_it_lists_people_with_a_fixed_number_of_queries(admin: Client, django_assert_num_queries: object) -> None:
    def count() -> int:
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as queries:
            assert admin.get(reverse("people")).status_code == 200
        return len(queries)

    before = count()
    for number in range(20):
        create_api_token(user=a_user(f"p{number}"), name="x")
    assert count() == before


def shown_once(client: Client, address: str, given: dict[str, str], secret: str) -> None:
    """The form redirects; the page after it shows the secret once, is asked by HEAD before, and makes nothing new."""
    answer = client.post(address, given)
    assert answer.status_code == 302
    assert not re.search(secret, answer["Location"])
    entries = AuditEntry.objects.count()
    kept = list(client.session["shown_once"].values())
    assert not client.head(answer["Location"]).content
    first, again = client.get(answer["Location"]), client.get(answer["Location"])
    assert [one["Cache-Control"] for one in (first, again)] == ["no-store", "no-store"]
    found = re.search(secret, first.content.decode())
    assert found
    assert not any(found[0].split("=")[-1] in each for each in kept)
    assert not re.search(secret, again.content.decode())
    assert "was shown once and cannot be shown again" in again.content.decode()
    assert client.session["shown_once"] == {}
    assert AuditEntry.objects.count() == entries


def test_a_token_is_shown_once_and_a_reload_makes_no_second_one(admin: Client) -> None:
    shown_once(admin, reverse("create_token"), {"name": "nightly job"}, r"\b[0-9a-f]{64}\b")
    assert ApiToken.objects.count() == 1


def test_a_password_link_is_shown_once_and_a_reload_makes_no_second_one(admin: Client) -> None:
    link = r"/set-password/\w+/\w"
    shown_once(admin, reverse("add_person"), {"username": "olga", "role": "viewer"}, link)
    assert User.objects.count() == 2
    shown_once(admin, reverse("reset_password", args=[User.objects.get(username="olga").pk]), {}, link)


def test_secrets_of_two_forms_in_two_tabs_are_each_shown(admin: Client) -> None:
    first = admin.post(reverse("add_person"), {"username": "olga", "role": "viewer"})["Location"]
    second = admin.post(reverse("add_person"), {"username": "otto", "role": "viewer"})["Location"]
    links = [link_in(admin.get(address).content.decode()) for address in (first, second)]
    assert links[0] != links[1]


def test_an_enrolment_command_is_shown_once_and_a_reload_creates_no_second_one(admin: Client) -> None:
    shown_once(admin, reverse("make_enrolment"), {"slug": "storage9"}, r"SWEETSPOT_TOKEN=\w+")
    assert EnrolmentToken.objects.count() == 1
