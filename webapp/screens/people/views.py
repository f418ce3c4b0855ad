"""Pages of people for admins: the list, one person, and all changes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from webapp.analysis.models import ComparisonLink
from webapp.core import people
from webapp.core.errors import Refusal
from webapp.core.models import ApiToken, Role, User
from webapp.core.people import people_list, tokens_of
from webapp.core.services import MAX_EMAIL_LENGTH
from webapp.notices.services import subscriptions_of
from webapp.schedules.models import Schedule
from webapp.screens import one_time_secrets
from webapp.screens.access import admin_action, admin_page, person

# Forms about people.

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
    may_arm = forms.BooleanField(required=False)

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


PER_PAGE = 50


@admin_page
def people_page(request: HttpRequest) -> HttpResponse:
    left = request.GET.get("show") == "left"
    shown = Paginator(people_list(left=left), PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "screens/people.html", {"people": shown, "form": AddPersonForm(), "left": left})


@admin_action
def add_person(request: HttpRequest) -> HttpResponse:
    """Add a person; the next page shows the password link once."""
    form = AddPersonForm(request.POST)
    if form.is_valid():
        try:
            username, role = form.cleaned_data["username"], Role(form.cleaned_data["role"])
            made = people.invite_user(username=username, role=role, by=person(request))
            return _link_made(request, made)
        except Refusal as refusal:
            form.add_error("username", refusal.message)
    return render(request, "screens/add_person.html", {"form": form}, status=422)


def _link_made(request: HttpRequest, user: User) -> HttpResponse:
    path = people.password_link(user=user, by=person(request))
    one_time_secrets.keep(request, f"password link {user.pk}", request.build_absolute_uri(path))
    return redirect("password_link", pk=user.pk)


@admin_page
def password_link(request: HttpRequest, pk: int) -> HttpResponse:
    context = {
        "somebody": get_object_or_404(User, pk=pk),
        "link": one_time_secrets.take(request, f"password link {pk}"),
        "hours": settings.PASSWORD_RESET_TIMEOUT // 3600,
    }
    return one_time_secrets.render_once(request, "screens/password_link.html", context)


@admin_page
def person_page(request: HttpRequest, pk: int) -> HttpResponse:
    return _person(request, get_object_or_404(User, pk=pk))


def _person(request: HttpRequest, somebody: User, problem: str = "") -> HttpResponse:
    context = {
        "somebody": somebody,
        "own": somebody.pk == person(request).pk,
        "form": RoleForm(initial={"role": somebody.role}),
        "tokens": tokens_of(somebody),
        "subscription_count": subscriptions_of(somebody).count(),
        "links": ComparisonLink.objects.filter(created_by=somebody, revoked_at=None).count(),
        "schedules": Schedule.objects.filter(owner=somebody, deleted_at=None).count(),
        "external_login": settings.OIDC_ISSUER or settings.PROXY_USER_HEADER,
        "problem": problem,
    }
    return render(request, "screens/person.html", context, status=422 if problem else 200)


def _changed(request: HttpRequest, somebody: User, change: Callable[[], object], message: str) -> HttpResponse:
    """Make the change and show a message, or show the problem on the person's page."""
    try:
        change()
    except Refusal as refusal:
        return _person(request, somebody, refusal.message)
    messages.success(request, message)
    me = User.objects.get(pk=person(request).pk)
    return redirect("person", pk=somebody.pk) if me.is_administrator and me.is_active else redirect("overview")


@admin_action
def change_role(request: HttpRequest, pk: int) -> HttpResponse:
    somebody = get_object_or_404(User, pk=pk)
    form = RoleForm(request.POST)
    if not form.is_valid():
        return _person(request, somebody, "Choose one of the roles.")
    role, acknowledged = Role(form.cleaned_data["role"]), form.cleaned_data["acknowledged"]
    return _changed(
        request,
        somebody,
        lambda: people.change_role(user=somebody, role=role, by=person(request), acknowledged=acknowledged),
        f"{somebody.username} is now {role.label.lower()}.",
    )


def _acknowledged(request: HttpRequest) -> bool:
    """Whether the check box of the acknowledgement is ticked."""
    form = KnowingForm(request.POST)
    return form.is_valid() and bool(form.cleaned_data["acknowledged"])


@admin_action
def deactivate(request: HttpRequest, pk: int) -> HttpResponse:
    somebody = get_object_or_404(User, pk=pk)
    acknowledged = _acknowledged(request)
    return _changed(
        request,
        somebody,
        lambda: people.deactivate_user(user=somebody, by=person(request), acknowledged=acknowledged),
        f"{somebody.username} can no longer log in; sessions and tokens have stopped working.",
    )


@admin_action
def reactivate(request: HttpRequest, pk: int) -> HttpResponse:
    somebody = get_object_or_404(User, pk=pk)
    return _changed(
        request,
        somebody,
        lambda: people.reactivate_user(user=somebody, by=person(request)),
        f"{somebody.username} is restored. Create a password link so that they can log in."
        if somebody.left_at
        else f"{somebody.username} can log in again with the earlier password; sessions and tokens stay ended.",
    )


@admin_action
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    somebody = get_object_or_404(User, pk=pk)
    acknowledged = _acknowledged(request)
    return _changed(
        request,
        somebody,
        lambda: people.remove_user(user=somebody, by=person(request), acknowledged=acknowledged),
        f"{somebody.username} is removed and can no longer log in. Entries in the audit log keep the name.",
    )


@admin_action
def anonymise(request: HttpRequest, pk: int) -> HttpResponse:
    somebody = get_object_or_404(User, pk=pk)
    if request.POST.get("confirm", "") != somebody.username:
        return _person(request, somebody, f"Type {somebody.username} to remove the name. Nothing was changed.")
    return _changed(
        request,
        somebody,
        lambda: people.anonymise_user(user=somebody, by=person(request)),
        "The name is removed from the list of people, from runs, plans and notes, and from the audit log.",
    )


@admin_action
def reset_password(request: HttpRequest, pk: int) -> HttpResponse:
    somebody = get_object_or_404(User, pk=pk)
    try:
        return _link_made(request, somebody)
    except Refusal as refusal:
        return _person(request, somebody, refusal.message)


@admin_action
def connect(request: HttpRequest, pk: int) -> HttpResponse:
    somebody = get_object_or_404(User, pk=pk)
    return _changed(
        request,
        somebody,
        lambda: people.allow_connection(user=somebody, by=person(request)),
        f"The next external log-in with the exact name {somebody.username} is connected to this account.",
    )


@admin_action
def revoke_persons_token(request: HttpRequest, pk: int, token: UUID) -> HttpResponse:
    api_token = get_object_or_404(ApiToken, pk=token, user_id=pk)
    revoke(request, api_token)
    return redirect("person", pk=pk)


def revoke(request: HttpRequest, token: ApiToken) -> None:
    """Revoke the token and show a message."""
    if people.revoke_api_token(token=token, by=person(request)):
        messages.success(request, f"The token “{token.name}” is revoked.")
    else:
        messages.info(request, f"The token “{token.name}” was already revoked.")
