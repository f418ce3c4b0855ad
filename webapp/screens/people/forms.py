"""Forms about people."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm

from webapp.core.models import Role, User
from webapp.core.services import MAX_EMAIL_LENGTH

ROLES_IN_WORDS = {
    Role.VIEWER: "reads everything, changes nothing",
    Role.OPERATOR: "starts and changes runs, plans and hosts",
    Role.ADMIN: "also manages people",
}
_CHOICES = [(role.value, f"{role.label}: {ROLES_IN_WORDS[role]}") for role in Role]


def _styled(form: forms.BaseForm) -> None:
    for field in form.fields.values():
        kind = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
        field.widget.attrs.setdefault("class", kind)


class AddPersonForm(forms.Form):
    username = forms.CharField(
        label="Name",
        max_length=150,
        help_text="The person logs in with this name; it is shown with their actions.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label="Role", choices=_CHOICES, initial=Role.VIEWER)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _styled(self)


class RoleForm(forms.Form):
    role = forms.ChoiceField(label="Role", choices=_CHOICES)
    acknowledged = forms.BooleanField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _styled(self)


class KnowingForm(forms.Form):
    """A check box that acknowledges the consequences for the person's own account."""

    acknowledged = forms.BooleanField(required=False)


class EmailForm(forms.Form):
    email = forms.CharField(
        label="E-mail address",
        max_length=MAX_EMAIL_LENGTH,
        required=False,
        help_text="For notices to which you subscribe. Leave it empty to remove the address.",
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _styled(self)


class TokenForm(forms.Form):
    name = forms.CharField(
        label="Purpose",
        max_length=100,
        help_text="For example: nightly job on build3.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _styled(self)


if TYPE_CHECKING:  # it is generic only for the type checker
    _Set = SetPasswordForm[User]
else:
    _Set = SetPasswordForm

_RULES = "At least 12 characters; not your name and not a common password. A few random words work well."


class OwnPasswordForm(PasswordChangeForm):
    """The old password, and the new one twice. No field has autofocus, because the page has several forms."""

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.fields["old_password"].widget.attrs.pop("autofocus", None)
        _in_words(self)


class FirstPasswordForm(_Set):
    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        _in_words(self)


def _in_words(form: "SetPasswordForm[Any]") -> None:
    form.fields["new_password1"].help_text = _RULES
    form.fields["new_password2"].label = "Repeat new password"
    form.fields["new_password2"].help_text = ""
    _styled(form)
