"""Roles, accounts that are switched off, password links: and always an admin who can log in."""

import threading
from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth.tokens import default_token_generator
from django.db import connection

from webapp.core import people
from webapp.core.errors import Refusal
from webapp.core.models import FORMER, ApiToken, AuditEntry, Role, User
from webapp.core.people import people_list
from webapp.core.services import create_api_token
from webapp.runs.actions.run_actions import pause_run, skip_trials
from webapp.runs.models import Transition, Trial
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.runs import a_run


@pytest.fixture
def admin(db: None) -> User:
    return a_user("anna", Role.ADMIN)


def refused(change: Callable[[], object]) -> str:
    with pytest.raises(Refusal) as found:
        change()
    return found.value.code


def test_it_invites_somebody_who_cannot_log_in_before_setting_a_password(admin: User) -> None:
    made = people.invite_user(username="  olga ", role=Role.OPERATOR, by=admin)
    assert (made.username, made.role, made.has_usable_password()) == ("olga", "operator", False)
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.action, entry.object_id, entry.detail) == (
        "anna", "user.create", str(made.pk), {"role": "operator"}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "code"), [("ANNA", "username_taken"), ("a b", "username_refused"), ("", "username_refused")]
)
def test_it_refuses_a_name_in_words(admin: User, name: str, code: str) -> None:
    assert refused(lambda: people.invite_user(username=name, role=Role.VIEWER, by=admin)) == code
    assert User.objects.count() == 1


def test_it_changes_a_role_and_records_from_what_to_what(admin: User) -> None:
    olga = a_user("olga", Role.VIEWER)
    people.change_role(user=olga, role=Role.OPERATOR, by=admin)
    olga.refresh_from_db()
    assert olga.is_operator
    assert AuditEntry.objects.get().detail == {"before": "viewer", "after": "operator"}


def test_it_records_nothing_where_nothing_changes(admin: User) -> None:
    olga = a_user("olga", Role.VIEWER)
    people.change_role(user=olga, role=Role.VIEWER, by=admin)
    people.reactivate_user(user=olga, by=admin)
    assert not AuditEntry.objects.exists()


def test_it_keeps_the_last_admin(admin: User) -> None:
    viewer = Role.VIEWER
    assert refused(lambda: people.change_role(user=admin, role=viewer, by=admin, acknowledged=True)) == "last_admin"
    assert refused(lambda: people.deactivate_user(user=admin, by=admin, acknowledged=True)) == "last_admin"
    admin.refresh_from_db()
    assert admin.is_administrator
    assert admin.is_active


def test_it_does_not_count_admins_who_cannot_log_in(admin: User) -> None:
    people.invite_user(username="invited", role=Role.ADMIN, by=admin)
    gone = a_user("gone", Role.ADMIN)
    people.deactivate_user(user=gone, by=admin)
    assert refused(lambda: people.deactivate_user(user=admin, by=admin, acknowledged=True)) == "last_admin"


def test_it_asks_those_who_change_themselves(admin: User) -> None:
    a_user("second", Role.ADMIN)
    assert refused(lambda: people.change_role(user=admin, role=Role.VIEWER, by=admin)) == "own_account"
    assert refused(lambda: people.deactivate_user(user=admin, by=admin)) == "own_account"
    assert refused(lambda: people.password_link(user=admin, by=admin)) == "own_account"
    people.change_role(user=admin, role=Role.VIEWER, by=admin, acknowledged=True)
    admin.refresh_from_db()
    assert admin.role == Role.VIEWER


@pytest.mark.django_db(transaction=True)
def test_it_keeps_one_of_two_admins_who_demote_each_other_at_once() -> None:
    for turn in range(5):
        one, two = a_user(f"one{turn}", Role.ADMIN), a_user(f"two{turn}", Role.ADMIN)
        AuditEntry.objects.all().delete()
        User.objects.exclude(pk__in=(one.pk, two.pk)).delete()
        outcomes = at_once(
            partial(people.change_role, user=two, role=Role.VIEWER, by=one),
            partial(people.change_role, user=one, role=Role.VIEWER, by=two),
        )
        assert sorted(outcomes) == ["", "last_admin"]
        assert User.objects.filter(role=Role.ADMIN, is_active=True).count() == 1


def at_once(*changes: Callable[[], object]) -> list[str]:
    """Each in a thread and a connection of its own, released together; the codes of refusals."""
    gate, outcomes = threading.Barrier(len(changes)), []

    def run(change: Callable[[], object]) -> None:
        gate.wait(10)
        try:
            change()
            outcomes.append("")
        except Refusal as refusal:
            outcomes.append(refusal.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(change,)) for change in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return outcomes


def test_who_leaves_is_let_in_nowhere_and_keeps_their_name(admin: User) -> None:
    olga = a_user("olga")
    create_api_token(user=olga, name="nightly")
    people.remove_user(user=olga, by=admin)
    people.remove_user(user=olga, by=admin)
    olga.refresh_from_db()
    assert (olga.username, olga.is_active, olga.has_usable_password()) == ("olga", False, False)
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    assert [entry.detail for entry in AuditEntry.objects.filter(action="user.remove")] == [{"tokens_revoked": 1}]
    assert (list(people_list()), list(people_list(left=True))) == ([admin], [olga])
    assert refused(lambda: people.invite_user(username="Olga", role=Role.VIEWER, by=admin)) == "username_taken"


def test_who_left_can_be_brought_back_with_a_new_link(admin: User) -> None:
    olga = a_user("olga")
    people.remove_user(user=olga, by=admin)
    people.reactivate_user(user=olga, by=admin)
    olga.refresh_from_db()
    assert (olga.is_active, olga.left_at, olga.has_usable_password()) == (True, None, False)


def test_the_last_admin_cannot_leave_nor_oneself_unknowingly(admin: User) -> None:
    assert refused(lambda: people.remove_user(user=admin, by=admin, acknowledged=True)) == "last_admin"
    second = a_user("berta", Role.ADMIN)
    assert refused(lambda: people.remove_user(user=second, by=second)) == "own_account"


def test_a_name_is_taken_away_wherever_it_was_written_and_nowhere_else(admin: User) -> None:
    olga, other = a_user("olga"), a_user("olga.b")
    create_api_token(user=olga, name="nightly")
    create_api_token(user=other, name="nightly")
    run = a_run(a_target())
    pause_run(run=run, by=olga)
    skip_trials(run=run, numbers=[1], reason="olga said so", by=olga)
    skip_trials(run=run, numbers=[2], reason="", by=other)
    assert refused(lambda: people.anonymise_user(user=olga, by=admin)) == "not_left"
    people.remove_user(user=olga, by=admin)
    before = AuditEntry.objects.count()
    name = people.anonymise_user(user=olga, by=admin)
    assert people.anonymise_user(user=User.objects.get(pk=olga.pk), by=admin) == name == f"former-person-{olga.pk}"
    assert AuditEntry.objects.count() == before + 1
    created = AuditEntry.objects.filter(action="token.create")
    assert {(entry.actor_name, entry.object_id) for entry in created} == {
        (name, str(olga.pk)), ("olga.b", str(other.pk)),
    }  # fmt: skip
    reasons = {row.reason for row in (*Transition.objects.all(), *Trial.objects.all())}
    assert {f"{name} paused the run.", f"Skipped by {name}: olga said so", "Skipped by olga.b."} <= reasons
    assert not any(text.startswith(("olga ", "Skipped by olga:")) for text in reasons)
    assert refused(lambda: people.reactivate_user(user=olga, by=admin)) == "anonymous"
    assert refused(lambda: people.invite_user(username=f"{FORMER}9", role=Role.VIEWER, by=admin)) == "username_refused"


def test_it_makes_a_link_that_voids_the_password_and_the_link_before(admin: User) -> None:
    olga = a_user("olga")
    first, second = people.password_link(user=olga, by=admin), people.password_link(user=olga, by=admin)
    olga.refresh_from_db()
    assert not olga.has_usable_password()
    tokens = [link.split("/")[3] for link in (first, second)]
    assert [default_token_generator.check_token(olga, token) for token in tokens] == [False, True]
    assert all(tokens[1] not in str(entry.detail) for entry in AuditEntry.objects.all())


def test_it_revokes_a_token_once(admin: User) -> None:
    olga = a_user("olga")
    create_api_token(user=olga, name="nightly")
    token = ApiToken.objects.select_related("user").get()
    assert [people.revoke_api_token(token=token, by=admin) for _ in range(2)] == [True, False]
    assert (
        AuditEntry.objects.filter(action="token.revoke", actor=admin, object_type="user", object_id=olga.pk).count()
        == 1
    )
