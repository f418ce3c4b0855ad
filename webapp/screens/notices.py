"""The person's own subscriptions and all changes to them. Other people's are not found."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.notices import mail, services
from webapp.notices.models import Channel, Event, Notice, Subscription
from webapp.notices.services import deliveries_of, send_again, send_test, subscriptions_of
from webapp.notices.webhook import MAX_URL
from webapp.plans.models import Plan
from webapp.screens import one_time_secrets
from webapp.screens.access import own_action, page, person
from webapp.screens.undo import with_undo

# The form of a subscription.

_URL = "The address that receives a POST for each event, for example https://hooks.example.com/sweetspot."


class SubscriptionForm(forms.Form):
    """Of a new subscription. `channel` leaves out e-mail where it is not set up."""

    channel = forms.ChoiceField(label="Channel", widget=forms.RadioSelect)
    url = forms.CharField(label="Webhook address", max_length=MAX_URL, required=False, help_text=_URL)
    plan = forms.ModelChoiceField(
        label="Plan", queryset=Plan.objects.none(), to_field_name="slug", required=False, empty_label="Every plan"
    )
    events = forms.MultipleChoiceField(
        label="Events",
        choices=Event.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one event."},
    )

    def __init__(self, *args: Any, subscription: Subscription | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = Q(deleted_at=None) | Q(pk=subscription.plan_id if subscription else None)
        self.fields["plan"].queryset = Plan.objects.filter(known)  # type: ignore[attr-defined]
        self.fields["plan"].widget.attrs["class"] = "form-select"
        for name in ("channel", "events"):
            self.fields[name].widget.attrs["class"] = "form-check-input"
        self.fields["url"].widget.attrs |= {"class": "form-control", "autocomplete": "off", "spellcheck": "false"}
        if subscription is None:
            offered = list(Channel) if mail.is_set_up() else [Channel.WEBHOOK]
            self.fields["channel"].choices = [(channel.value, channel.label) for channel in offered]  # type: ignore[attr-defined]
            self.fields["channel"].initial = offered[0].value
        else:
            del self.fields["channel"]
            if subscription.channel == Channel.EMAIL:
                del self.fields["url"]

    @property
    def given(self) -> dict[str, Any]:
        """Of a valid form, as services take it."""
        url = self.cleaned_data.get("url", "").strip()
        if self.cleaned_data.get("channel") == Channel.EMAIL:
            url = ""  # typed before the channel was chosen
        return {
            "plan": self.cleaned_data["plan"],
            "events": [Event(e) for e in self.cleaned_data["events"]],
            "url": url,
        }


PER_PAGE = 25


@page
def notices_page(request: HttpRequest) -> HttpResponse:
    """`?plan=` of a plan's page chooses the plan in the form."""
    initial = {"plan": request.GET.get("plan"), "events": [Event.ENDED, Event.FAILED]}
    return _notices(request, SubscriptionForm(initial=initial))


def _notices(request: HttpRequest, form: SubscriptionForm) -> HttpResponse:
    me = person(request)
    context = {
        "subscriptions": [
            (subscription, [Event(event).label for event in subscription.events])
            for subscription in subscriptions_of(me)
        ],
        "deliveries": Paginator(deliveries_of(me), PER_PAGE).get_page(request.GET.get("page")),
        "form": form,
        "mail_set_up": mail.is_set_up(),
    }
    return render(request, "screens/notices.html", context, status=422 if form.errors else 200)


@own_action
def add(request: HttpRequest) -> HttpResponse:
    """Add a subscription. The next page shows a webhook's secret, once. Undo also sends `paused`."""
    form = SubscriptionForm(request.POST)
    if form.is_valid():
        channel = Channel(form.cleaned_data["channel"])
        try:
            made, secret = services.create_subscription(user=person(request), channel=channel, **form.given)
        except Refusal as refusal:
            _refused(form, refusal)
        else:
            if request.POST.get("paused"):
                services.pause_subscription(subscription=made)
                messages.success(request, "The subscription is added and paused.")
            else:
                messages.success(request, "The subscription is added. Send a test notice to check it.")
            return _show_secret(request, made, secret) if secret else redirect("notices")
    return _notices(request, form)


@page
def notice_page(request: HttpRequest, pk: int) -> HttpResponse:
    subscription = _own(request, pk)
    initial = {
        "url": subscription.url,
        "plan": subscription.plan.slug if subscription.plan else None,
        "events": subscription.events,
    }
    return _notice(request, subscription, SubscriptionForm(initial=initial, subscription=subscription))


def _notice(request: HttpRequest, subscription: Subscription, form: SubscriptionForm) -> HttpResponse:
    context = {"subscription": subscription, "form": form}
    return render(request, "screens/notice.html", context, status=422 if form.errors else 200)


@own_action
def change(request: HttpRequest, pk: int) -> HttpResponse:
    subscription = _own(request, pk)
    form = SubscriptionForm(request.POST, subscription=subscription)
    if form.is_valid():
        try:
            services.change_subscription(subscription=subscription, **form.given)
        except Refusal as refusal:
            _refused(form, refusal)
        else:
            messages.success(request, "The subscription is changed.")
            return redirect("notices")
    return _notice(request, subscription, form)


@own_action
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    services.pause_subscription(subscription=_own(request, pk))
    messages.success(request, "The subscription is paused. Events during the pause are not sent later.")
    return redirect("notices")


@own_action
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    services.resume_subscription(subscription=_own(request, pk))
    messages.success(request, "The subscription is active again.")
    return redirect("notices")


@own_action
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    subscription = _own(request, pk)
    message = _deleted(request, subscription)
    services.delete_subscription(subscription=subscription)
    messages.success(request, message)
    return redirect("notices")


def _deleted(request: HttpRequest, subscription: Subscription) -> str:
    """With Undo for e-mail: the secret of a webhook cannot be restored."""
    words = "The subscription and its deliveries are deleted."
    if subscription.channel == Channel.WEBHOOK:
        return f"{words} The secret of the webhook is deleted too: to receive notices again, add a new subscription."
    given = [("channel", subscription.channel), ("plan", subscription.plan.slug if subscription.plan else "")]
    given += [("events", event) for event in subscription.events]
    given += [("paused", "1")] if subscription.paused_at else []
    return with_undo(request, f"{words} Undo adds the subscription again.", reverse("add_notice"), given=given)


@own_action
def test(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        send_test(subscription=_own(request, pk))
        messages.success(request, "The test notice is sent within a few seconds. Reload the page to see its state.")
    except Refusal as refusal:
        messages.error(request, refusal.message)
    return redirect("notices")


@page
def secret_page(request: HttpRequest, pk: int) -> HttpResponse:
    """The secret of a webhook, shown once after its creation; later the page only offers to renew it."""
    subscription = _own_webhook(request, pk)
    context = {"subscription": subscription, "secret": one_time_secrets.take(request, _secret_name(subscription))}
    return one_time_secrets.render_once(request, "screens/notice_secret.html", context)


@own_action
def renew(request: HttpRequest, pk: int) -> HttpResponse:
    subscription = _own_webhook(request, pk)
    return _show_secret(request, subscription, services.renew_secret(subscription=subscription))


def _show_secret(request: HttpRequest, subscription: Subscription, secret: str) -> HttpResponse:
    one_time_secrets.keep(request, _secret_name(subscription), secret)
    return redirect("notice_secret", subscription.pk)


def _secret_name(subscription: Subscription) -> str:
    return f"webhook {subscription.pk}"


@own_action
def send_one_again(request: HttpRequest, delivery: UUID) -> HttpResponse:
    notice = get_object_or_404(Notice, pk=delivery, subscription__user=person(request))
    if send_again(notice=notice):
        messages.success(request, "The notice is sent again within a few seconds. Reload the page to see its state.")
    else:
        messages.info(request, "The notice was sent before, or is being sent now.")
    return redirect("notices")


def _own(request: HttpRequest, pk: int) -> Subscription:
    return get_object_or_404(subscriptions_of(person(request)), pk=pk)


def _own_webhook(request: HttpRequest, pk: int) -> Subscription:
    return get_object_or_404(Subscription, pk=pk, user=person(request), channel=Channel.WEBHOOK)


def _refused(form: SubscriptionForm, refusal: Refusal) -> None:
    """Show the problem at its field."""
    at_url = refusal.code.startswith("webhook_")
    form.add_error("url" if at_url else None, refusal.message)
