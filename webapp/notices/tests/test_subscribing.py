"""Subscriptions: what is refused, what is recorded, how secrets are kept."""

from typing import Any

import pytest
from django.db import connection

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry, User
from webapp.core.services import set_email
from webapp.notices import services
from webapp.notices.models import Channel, Event, Failure, Notice, Subscription
from webapp.notices.services import (
    change_subscription,
    create_subscription,
    delete_subscription,
    pause_subscription,
    renew_secret,
    resume_subscription,
)
from webapp.notices.tests.receivers import Mailbox
from webapp.notices.webhook import sealed, unsealed
from webapp.probes import exposition
from webapp.tests.factories.notices import a_notice, a_plan, a_subscription
from webapp.tests.factories.people import a_user
from webapp.tests.refusals import refuses
from webapp.tests.threads import at_once

pytestmark = pytest.mark.django_db

URL = "https://1.1.1.1/hook?token=hidden"


def refused(**changes: Any) -> str:
    given: dict[str, Any] = {"channel": Channel.WEBHOOK, "plan": None, "events": [Event.ENDED], "url": URL}
    with pytest.raises(Refusal) as refusal:
        create_subscription(**(given | changes))
    assert not Subscription.objects.filter(url=changes.get("url", "")).exists()
    return refusal.value.code


@pytest.fixture
def user() -> User:
    return a_user()


def test_it_makes_a_webhook_with_a_secret_that_only_the_server_can_read(user: User) -> None:
    made, secret = create_subscription(
        user=user, channel=Channel.WEBHOOK, url=URL, plan=None, events=[Event.FAILED, Event.ENDED]
    )
    assert made.events == ["ended", "failed"]
    assert len(secret) >= 43
    with connection.cursor() as cursor:
        cursor.execute("SELECT s::text, encode(secret, 'escape') FROM notices_subscription s")
        assert secret not in "".join(cursor.fetchone())
    made.refresh_from_db()
    assert unsealed(made.secret) == secret
    (entry,) = AuditEntry.objects.filter(action="notice.subscribe", actor=user)
    assert entry.detail["receiver"] == "1.1.1.1"
    for hidden in (secret, "hidden"):
        assert hidden not in f"{entry.label} {entry.detail}"


def test_a_secret_of_another_secret_key_is_said_to_be_lost(settings: Any) -> None:
    kept = sealed("x")
    settings.SECRET_KEY = "another" * 10
    with pytest.raises(Failure, match="Renew the secret"):
        unsealed(kept)


def test_it_refuses_in_words(user: User) -> None:
    assert refused(user=user, url="http://127.0.0.1/") == "webhook_inside"
    assert refused(user=user, url="ftp://1.1.1.1/") == "webhook_url_refused"
    assert refused(user=user, events=[]) == "events_missing"
    assert refused(user=user, channel=Channel.EMAIL) == "subscription_refused"
    assert refused(user=user, channel=Channel.EMAIL, url="") == "mail_not_set_up"


def test_it_wants_an_address_before_e_mail_is_chosen(user: User, mailbox: Mailbox) -> None:
    assert refused(user=user, channel=Channel.EMAIL, url="") == "email_missing"
    set_email(user=user, email="olga@example.com")
    made, secret = create_subscription(user=user, channel=Channel.EMAIL, plan=a_plan(), events=[Event.ENDED])
    assert (made.url, bytes(made.secret), secret) == ("", b"", "")


def test_it_refuses_the_same_twice_and_more_than_are_allowed(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    first = a_subscription(URL, user=user)
    assert refused(user=user) == "subscription_exists"
    other = a_subscription(URL, user=user, plan=a_plan())
    with refuses("subscription_exists"):
        change_subscription(subscription=other, plan=None, events=[Event.ENDED], url=URL)
    monkeypatch.setattr(services, "MAX_SUBSCRIPTIONS", 2)
    assert refused(user=user, url="https://1.1.1.1/other") == "too_many_subscriptions"
    assert set(Subscription.objects.all()) == {first, other}


@pytest.mark.django_db(transaction=True)
def test_two_that_subscribe_at_once_subscribe_once(user: User) -> None:
    def make() -> int:
        return create_subscription(user=user, channel=Channel.WEBHOOK, url=URL, plan=None, events=[Event.ENDED])[0].pk

    found = at_once(make, make)
    assert sorted(type(one).__name__ for one in found) == ["Refusal", "int"]
    assert Subscription.objects.count() == 1


def test_each_change_is_recorded_once(user: User) -> None:
    subscription = a_subscription(URL, user=user)
    for _ in range(2):
        pause_subscription(subscription=subscription)
    for _ in range(2):
        resume_subscription(subscription=subscription)
    change_subscription(subscription=subscription, plan=a_plan(), events=[Event.LATE], url="https://1.1.1.1/other")
    renew_secret(subscription=subscription)
    delete_subscription(subscription=subscription)
    actions = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert actions == [
        "notice.pause", "notice.resume", "notice.change", "notice.renew_secret", "notice.delete",
    ]  # fmt: skip


def test_only_a_webhook_has_a_secret_to_renew(user: User) -> None:
    subscription = a_subscription(URL, user=user)
    secret = renew_secret(subscription=subscription)
    subscription.refresh_from_db()
    assert unsealed(subscription.secret) == secret
    with pytest.raises(Refusal):
        renew_secret(subscription=a_subscription())


@pytest.mark.parametrize(
    "address",
    ["nobody", "a@", "@b", "a b@example.com", "a@example.com\nBcc: b@example.com", "a@example.com,b@example.com",
     "x" * 250 + "@example.com"],
)  # fmt: skip
def test_it_refuses_what_is_no_e_mail_address(user: User, address: str) -> None:
    with pytest.raises(Refusal) as refusal:
        set_email(user=user, email=address)
    assert refusal.value.code == "email_refused"


def test_it_records_that_an_address_changed_but_not_the_address(user: User) -> None:
    assert set_email(user=user, email=" olga@example.com ")
    assert not set_email(user=user, email="olga@example.com")
    assert set_email(user=user, email="")
    entries = AuditEntry.objects.filter(action="user.email").order_by("id")
    assert [entry.detail for entry in entries] == [{"removed": False}, {"removed": True}]


def test_it_counts_what_waits_and_what_was_given_up() -> None:
    a_notice(URL)
    Notice.objects.filter(pk=a_notice(URL).pk).update(state="failed")
    Notice.objects.filter(pk=a_notice(URL).pk).update(state="sent")
    text = exposition()
    assert 'sweetspot_notices{state="pending"} 1' in text
    assert 'sweetspot_notices{state="failed"} 1' in text
