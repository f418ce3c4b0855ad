"""People, for admins: list, add, roles, log-in, tokens, disable, remove."""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Router, Schema, Status
from ninja.pagination import paginate
from pydantic import StrictBool

from webapp.api.common.authentication import ADMINS, administrator
from webapp.api.common.schemas import Input, Paged
from webapp.core import people
from webapp.core.errors import NotFound, Refusal
from webapp.core.models import ApiToken, Role, User
from webapp.core.people import people_list, tokens_of

router = Router(tags=["people"])


class PersonOut(Schema):
    """`token_count` counts valid API tokens; `has_password` is false until the link is used."""

    id: int
    username: str
    role: Role
    is_active: bool
    has_password: bool
    has_external_login: bool
    may_connect: bool
    token_count: int
    date_joined: datetime
    last_login: datetime | None
    left_at: datetime | None

    @staticmethod
    def resolve_has_password(user: User) -> bool:
        return user.has_usable_password()

    @staticmethod
    def resolve_has_external_login(user: User) -> bool:
        return user.external_id is not None


class TokenOut(Schema):
    """A valid API token; the token itself is shown only to its person, once."""

    id: UUID
    name: str
    may_arm: bool
    created_at: datetime
    last_used_at: datetime | None


class PersonIn(Input):
    username: str = Field(max_length=150)
    role: Role = Role.VIEWER


class Invited(PersonOut):
    password_link: str  # shown once


class LinkOut(Schema):
    password_link: str  # shown once


class RoleIn(Input):
    """`acknowledged` is required when you lower your own role."""

    role: Role
    acknowledged: StrictBool = False


class AcknowledgementIn(Input):
    """`acknowledged` is required for your own account."""

    acknowledged: StrictBool = False


class ConfirmIn(Input):
    """`confirm`: the person's name, because this cannot be undone."""

    confirm: str


def _somebody(pk: int) -> User:
    for left in (False, True):
        if person := people_list(left=left).filter(pk=pk).first():
            return person
    raise NotFound("person_unknown", f"There is no person {pk}.")


def _link(request: HttpRequest, user: User, by: User) -> str:
    return str(request.build_absolute_uri(people.password_link(user=user, by=by)))


@router.get("/people", response=list[PersonOut], auth=ADMINS)
@paginate(Paged)
def all_people(request: HttpRequest, left: bool = False) -> QuerySet[User]:
    """People, or with `left` the removed ones."""
    administrator(request)
    return people_list(left=left)


@router.post("/people", response={201: Invited}, auth=ADMINS)
def invite(request: HttpRequest, body: PersonIn) -> Status[User]:
    """Add a person, who sets a password with the link, once and within a day."""
    by = administrator(request)
    made = people.invite_user(username=body.username, role=body.role, by=by)
    link = _link(request, made, by)
    invited = _somebody(made.pk)
    invited.password_link = link  # type: ignore[attr-defined]
    return Status(201, invited)


@router.get("/people/{pk}", response=PersonOut, auth=ADMINS)
def one_person(request: HttpRequest, pk: int) -> User:
    """A person."""
    administrator(request)
    return _somebody(pk)


@router.post("/people/{pk}/role", response=PersonOut, auth=ADMINS)
def change_role(request: HttpRequest, pk: int, body: RoleIn) -> User:
    """Change the role of a person."""
    by = administrator(request)
    people.change_role(user=_somebody(pk), role=body.role, by=by, acknowledged=body.acknowledged)
    return _somebody(pk)


@router.post("/people/{pk}/deactivate", response=PersonOut, auth=ADMINS)
def deactivate(request: HttpRequest, pk: int, body: AcknowledgementIn) -> User:
    """Sessions and tokens stop working with the next request. Safe to repeat."""
    by = administrator(request)
    people.deactivate_user(user=_somebody(pk), by=by, acknowledged=body.acknowledged)
    return _somebody(pk)


@router.post("/people/{pk}/reactivate", response=PersonOut, auth=ADMINS)
def reactivate(request: HttpRequest, pk: int) -> User:
    """Enable the account. A removed person then needs a new password link. Safe to repeat."""
    by = administrator(request)
    people.reactivate_user(user=_somebody(pk), by=by)
    return _somebody(pk)


@router.post("/people/{pk}/password-link", response=LinkOut, auth=ADMINS)
def new_password_link(request: HttpRequest, pk: int) -> LinkOut:
    """Create a password link. The current password and all sessions stop working."""
    by = administrator(request)
    return LinkOut(password_link=_link(request, _somebody(pk), by))


@router.post("/people/{pk}/connect-external-login", response=PersonOut, auth=ADMINS)
def connect_external_login(request: HttpRequest, pk: int) -> User:
    """Connect the next external log-in with exactly this name to the account, once. Safe to repeat.

    A new password link cancels the permission.
    """
    by = administrator(request)
    people.allow_connection(user=_somebody(pk), by=by)
    return _somebody(pk)


@router.get("/people/{pk}/tokens", response=list[TokenOut], auth=ADMINS)
@paginate(Paged)
def tokens(request: HttpRequest, pk: int) -> QuerySet[ApiToken]:
    """Valid API tokens of a person, newest first."""
    administrator(request)
    return tokens_of(_somebody(pk))


@router.delete("/people/{pk}/tokens/{token}", response={204: None}, auth=ADMINS)
def revoke_token(request: HttpRequest, pk: int, token: UUID) -> Status[None]:
    """Revoke an API token: it stops working with the next request. Safe to repeat."""
    by = administrator(request)
    people.revoke_api_token(token=get_object_or_404(ApiToken, pk=token, user=_somebody(pk)), by=by)
    return Status(204, None)


@router.delete("/people/{pk}", response=PersonOut, auth=ADMINS)
def remove(request: HttpRequest, pk: int, body: AcknowledgementIn) -> User:
    """Remove a person: log-in stops with the next request; the audit log keeps the name."""
    by = administrator(request)
    people.remove_user(user=_somebody(pk), by=by, acknowledged=body.acknowledged)
    return _somebody(pk)


@router.post("/people/{pk}/anonymise", response=PersonOut, auth=ADMINS)
def anonymise(request: HttpRequest, pk: int, body: ConfirmIn) -> User:
    """Replace the name of a removed person by a number everywhere. Cannot be undone."""
    by, person = administrator(request), _somebody(pk)
    if body.confirm != person.username:
        raise Refusal("confirmation_wrong", f"confirm must be {person.username}. Nothing was changed.")
    people.anonymise_user(user=person, by=by)
    return _somebody(pk)
