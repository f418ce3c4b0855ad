"""The form of a subscription."""

from typing import Any

from django import forms
from django.db.models import Q

from webapp.notices import mail
from webapp.notices.addresses import MAX_URL
from webapp.notices.models import Channel, Event, Subscription
from webapp.plans.models import Plan

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
            self.fields["channel"].choices = [(one.value, one.label) for one in offered]  # type: ignore[attr-defined]
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
