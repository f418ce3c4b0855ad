"""The page of notices: one's own subscriptions, and nobody else's."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from webapp.core.models import AuditEntry, User
from webapp.notices.models import Notice, Subscription
from webapp.notices.webhook import unsealed
from webapp.tests.factories.notices import SECRET, a_notice, a_plan, a_subscription

URL = "https://1.1.1.1/hook"
NEW = {"channel": "webhook", "url": URL, "events": ["ended", "failed"]}


@pytest.fixture
def me(viewer: Client) -> User:
    return User.objects.get(username="vera")


def shown(client: Client, name: str = "notices", *args: object) -> str:
    answer = client.get(reverse(name, args=args))
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_viewer_adds_a_webhook_and_sees_its_secret_once(viewer: Client, me: User) -> None:
    assert "You have no subscriptions. Add one below" in shown(viewer)
    answer = viewer.post(reverse("add_notice"), NEW)
    made = Subscription.objects.get(user=me)
    assert answer["Location"] == reverse("notice_secret", args=[made.pk])
    page = viewer.get(answer["Location"])
    assert page["Cache-Control"] == "no-store"
    found = re.search(r'id="secret">([^<]+)<', page.content.decode())
    assert found
    assert found.group(1) == unsealed(made.secret)
    again = shown(viewer, "notice_secret", made.pk)
    assert found.group(1) not in again
    assert "was already shown" in again
    listed = shown(viewer)
    assert URL in listed
    assert "Run done or cancelled, Run failed" in listed
    assert found.group(1) not in listed


def test_a_look_at_the_headers_shows_no_secret(viewer: Client, me: User) -> None:
    viewer.post(reverse("add_notice"), NEW)
    made = Subscription.objects.get(user=me)
    viewer.head(reverse("notice_secret", args=[made.pk]))
    assert 'id="secret"' in shown(viewer, "notice_secret", made.pk)


def test_a_renewed_secret_is_shown_once(viewer: Client, me: User) -> None:
    made = a_subscription(URL, user=me)
    assert 'id="secret"' not in shown(viewer, "notice_secret", made.pk)
    viewer.post(reverse("renew_notice_secret", args=[made.pk]))
    made.refresh_from_db()
    assert unsealed(made.secret) in shown(viewer, "notice_secret", made.pk)
    assert 'id="secret"' not in shown(viewer, "notice_secret", made.pk)


def test_it_says_at_the_field_what_is_wrong(viewer: Client) -> None:
    refused = viewer.post(reverse("add_notice"), NEW | {"url": "http://localhost:6379/"})
    assert refused.status_code == 422
    text = refused.content.decode()
    assert "localhost is inside the server&#x27;s own network." in text
    assert 'value="http://localhost:6379/"' in text
    refused = viewer.post(reverse("add_notice"), {"channel": "webhook", "url": URL})
    assert "Choose at least one event." in refused.content.decode()
    assert not Subscription.objects.exists()


def test_it_says_that_e_mail_is_not_set_up(viewer: Client) -> None:
    text = shown(viewer)
    assert "E-mail is not set up on this server. The administrator can set SWEETSPOT_SMTP_URL." in text
    assert 'value="email"' not in text


def test_it_subscribes_by_e_mail_once_an_address_is_set(viewer: Client, me: User, settings: Settings) -> None:
    settings.EMAIL_HOST = "mail.example"
    by_mail = {"channel": "email", "events": ["late"], "url": "left over"}
    assert "set your address on the page" in shown(viewer)
    assert "You have no e-mail address." in viewer.post(reverse("add_notice"), by_mail).content.decode()
    viewer.post(reverse("change_email"), {"email": "vera@example.com"})
    assert "to vera@example.com" in shown(viewer)
    assert viewer.post(reverse("add_notice"), by_mail)["Location"] == reverse("notices")
    assert Subscription.objects.get(user=me).events == ["late"]


def test_the_link_of_a_plan_chooses_the_plan(viewer: Client) -> None:
    plan = a_plan()
    text = viewer.get(f"{reverse('notices')}?plan={plan.slug}").content.decode()
    assert f'<option value="{plan.slug}" selected>' in text


def test_it_changes_pauses_resumes_tests_and_deletes(viewer: Client, me: User) -> None:
    made, plan = a_subscription(URL, user=me), a_plan()
    viewer.post(reverse("change_notice", args=[made.pk]), {"url": f"{URL}2", "plan": plan.slug, "events": ["missed"]})
    made.refresh_from_db()
    assert (made.url, made.plan, made.events) == (f"{URL}2", plan, ["missed"])
    viewer.post(reverse("pause_notice", args=[made.pk]))
    assert "Paused" in shown(viewer)
    paused = viewer.post(reverse("test_notice", args=[made.pk]), follow=True).content.decode()
    assert "Resume it first" in paused
    viewer.post(reverse("resume_notice", args=[made.pk]))
    viewer.post(reverse("test_notice", args=[made.pk]))
    assert "Test notice from Sweetspot" in shown(viewer)
    viewer.post(reverse("renew_notice_secret", args=[made.pk]))
    viewer.post(reverse("delete_notice", args=[made.pk]))
    assert not Subscription.objects.exists()
    assert AuditEntry.objects.filter(actor=me, action__startswith="notice.").count() == 6


def test_it_keeps_a_deleted_plan_when_a_subscription_is_changed(viewer: Client, me: User) -> None:
    plan = a_plan()
    made = a_subscription(URL, user=me, plan=plan)
    plan.deleted_at = timezone.now()
    plan.save()
    assert f'<option value="{plan.slug}" selected>' in shown(viewer, "notice", made.pk)


def test_it_shows_why_a_delivery_failed_and_sends_it_again(viewer: Client, me: User) -> None:
    notice = a_notice(URL, user=me)
    Notice.objects.update(state="failed", tries=3, last_error="The receiver answered 404.")
    text = shown(viewer)
    assert "The receiver answered 404." in text
    assert 'aria-label="Send again: Run 17 of A plan is done"' in text
    viewer.post(reverse("send_notice_again", args=[notice.pk]))
    notice.refresh_from_db()
    assert notice.state == "pending"
    Notice.objects.update(state="sent")
    said = viewer.post(reverse("send_notice_again", args=[notice.pk]), follow=True).content.decode()
    assert "was sent before" in said


@pytest.mark.parametrize("who", ["viewer", "admin"])
def test_nobody_finds_the_subscriptions_of_others(request: pytest.FixtureRequest, who: str) -> None:
    client: Client = request.getfixturevalue(who)
    notice = a_notice(URL)
    pk = notice.subscription_id
    for name in ("notice", "notice_secret"):
        assert client.get(reverse(name, args=[pk])).status_code == 404, name
    for name in (
        "change_notice",
        "pause_notice",
        "resume_notice",
        "delete_notice",
        "test_notice",
        "renew_notice_secret",
    ):
        assert client.post(reverse(name, args=[pk])).status_code == 404, name
    assert client.post(reverse("send_notice_again", args=[notice.pk])).status_code == 404
    assert URL not in shown(client)
    assert "No notice has been queued" in shown(client)
    before = Subscription.objects.get()
    assert (before.paused_at, unsealed(before.secret)) == (None, SECRET)


def test_an_admin_sees_how_many_a_person_has(admin: Client) -> None:
    made = a_subscription(URL)
    assert "<dt>Notices</dt><dd>1 subscription</dd>" in shown(admin, "person", made.user_id)


def test_it_sets_and_removes_ones_own_address(viewer: Client, me: User) -> None:
    viewer.post(reverse("change_email"), {"email": " vera@example.com"})
    assert 'value="vera@example.com"' in shown(viewer, "account")
    refused = viewer.post(reverse("change_email"), {"email": "vera"})
    assert refused.status_code == 422
    assert "This is not an e-mail address." in refused.content.decode()
    viewer.post(reverse("change_email"), {"email": ""})
    me.refresh_from_db()
    assert me.email == ""


def test_it_takes_a_fixed_number_of_queries(operator: Client, queries_of: Callable[[str], int]) -> None:
    olga = User.objects.get(username="olga")
    a_notice(URL, user=olga)
    before = queries_of(reverse("notices"))
    for number in range(10):
        a_notice(f"{URL}{number}", user=olga)
    assert queries_of(reverse("notices")) == before
