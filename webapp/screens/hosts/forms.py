"""What a person gives to add a host."""

from django import forms
from django.core.validators import validate_slug

from webapp.hosts.models import Host


class AddHostForm(forms.Form):
    slug = forms.CharField(
        label="Short name",
        max_length=63,
        required=False,
        validators=[validate_slug],
        help_text="Letters, digits and hyphens, e.g. storage1. Left empty, the host's own name is taken.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if slug and Host.objects.filter(slug=slug).exists():
            raise forms.ValidationError(f"There is already a host called {slug}. Choose another name.")
        return slug
