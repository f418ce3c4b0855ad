"""Who may log in by a provider or a proxy, into which account, with which role."""

import pytest
from django.conf import LazySettings

from webapp.core import people
from webapp.core.errors import Refusal
from webapp.core.external_login import Identity, known_person
from webapp.core.models import AuditEntry, Role, User
from webapp.core.oidc import groups_in
from webapp.tests.factories.people import a_user

pytestmark = pytest.mark.django_db


def mia(*groups: str, name: str = "mia") -> Identity:
    return Identity("oidc https://id.example 4711", name, groups)


def refused(identity: Identity) -> str:
    with pytest.raises(Refusal) as found:
        known_person(identity)
    return found.value.code


def test_it_creates_a_person_once_and_finds_them_by_id_under_another_name() -> None:
    made = known_person(mia())
    assert (made.username, made.role, made.has_usable_password()) == ("mia", Role.VIEWER, False)
    assert known_person(mia(name="mia.new")) == made
    assert [entry.action for entry in AuditEntry.objects.all()] == ["user.create"]


def test_a_name_alone_opens_no_local_account() -> None:
    local = a_user("Mia", Role.ADMIN)
    local.set_password("correct horse battery")
    local.save()
    assert refused(mia()) == "username_taken"
    anna = a_user("anna", Role.ADMIN)
    people.password_link(user=local, by=anna)
    assert refused(mia(name="Mia")) == "username_taken"
    people.allow_connection(user=local, by=anna)
    assert refused(mia(name="mia")) == refused(mia(name="\uff2dia")) == "username_taken"
    assert known_person(mia(name="Mia")) == local
    assert AuditEntry.objects.filter(action="user.link").count() == 1


def test_a_permission_to_connect_ends_with_use_a_password_link_and_a_disabled_account() -> None:
    anna, local = a_user("anna", Role.ADMIN), a_user("mia")
    people.allow_connection(user=local, by=anna)
    people.password_link(user=local, by=anna)
    assert refused(mia()) == "username_taken"
    for end in (people.deactivate_user, people.remove_user):
        people.allow_connection(user=local, by=anna)
        end(user=local, by=anna)
        people.reactivate_user(user=local, by=anna)
        assert refused(mia()) == "username_taken"
    people.allow_connection(user=local, by=anna)
    assert known_person(mia()) == local
    with pytest.raises(Refusal, match="already has an external log-in"):
        people.allow_connection(user=local, by=anna)


def test_a_restored_person_has_no_external_log_in() -> None:
    anna, made = a_user("anna", Role.ADMIN), known_person(mia())
    people.remove_user(user=made, by=anna)
    people.reactivate_user(user=made, by=anna)
    assert refused(mia()) == "username_taken"


def test_an_invited_person_keeps_the_role_and_nobody_else_gets_the_account() -> None:
    anna = a_user("anna", Role.ADMIN)
    made = people.invite_user(username="mia", role=Role.OPERATOR, by=anna)
    assert refused(mia()) == "username_taken"
    people.allow_connection(user=made, by=anna)
    assert (known_person(mia()), made.role) == (made, Role.OPERATOR)
    assert refused(Identity("oidc https://id.example 666", "mia", ())) == "username_taken"


@pytest.mark.parametrize("end", [people.deactivate_user, people.remove_user])
def test_a_disabled_or_removed_account_is_refused_also_after_its_name_is_gone(end: object) -> None:
    anna, made = a_user("anna", Role.ADMIN), known_person(mia())
    end(user=made, by=anna)  # type: ignore[operator]
    assert refused(mia()) == "account_disabled"
    if end is people.remove_user:
        people.anonymise_user(user=made, by=anna)
        assert refused(mia()) == "account_disabled"
    assert User.objects.count() == 2


def test_a_disabled_invited_account_is_not_linked() -> None:
    anna = a_user("anna", Role.ADMIN)
    invited = people.invite_user(username="mia", role=Role.VIEWER, by=anna)
    people.deactivate_user(user=invited, by=anna)
    assert refused(mia()) == "account_disabled"
    assert User.objects.get(username="mia").external_id is None


def test_groups_give_the_highest_role_and_take_it_away(settings: LazySettings) -> None:
    a_user("anna", Role.ADMIN)
    settings.LOGIN_ROLES = {"lab": "operator", "lab-admins": "admin", "guests": "viewer"}
    assert refused(mia("others")) == "no_role"
    assert User.objects.count() == 1
    assert known_person(mia("guests", "lab-admins")).role == Role.ADMIN
    assert known_person(mia("guests")).role == Role.VIEWER
    assert refused(mia()) == "no_role"
    changed = AuditEntry.objects.get(action="user.role")
    assert changed.detail == {"before": "admin", "after": "viewer", "by_group": True}
    settings.LOGIN_ROLES = {"*": "operator"}
    assert known_person(mia()).role == Role.OPERATOR


def test_a_name_that_is_not_valid_is_refused() -> None:
    assert refused(mia(name="")) == "username_refused"
    assert refused(mia(name=r"DOMAIN\mia")) == "username_refused"
    assert refused(mia(name="former-person-3")) == "username_refused"
    assert refused(mia(name="m" * 151)) == "username_refused"


@pytest.mark.parametrize("claim", [True, False, 5, {"lab": 1}, ["lab", 5]])
def test_groups_that_are_no_texts_are_refused(claim: object) -> None:
    with pytest.raises(Refusal, match="not as a list of names"):
        groups_in(claim)
    assert (groups_in(None), groups_in("lab"), groups_in(["lab"])) == ([], ["lab"], ["lab"])
