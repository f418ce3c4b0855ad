"""The form to add a host."""

from django import forms

from webapp.core.errors import Refusal
from webapp.hosts.names import checked_name


class AddHostForm(forms.Form):
    slug = forms.CharField(
        label="Short name",
        max_length=63,
        required=False,
        help_text="Lowercase letters, digits and hyphens, e.g. storage1. If empty, the hostname is used.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"].strip()
        try:
            return checked_name(slug) if slug else ""
        except Refusal as refusal:
            raise forms.ValidationError(refusal.message) from refusal
