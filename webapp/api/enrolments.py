"""One-time tokens that enrol hosts."""

from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router, Schema, Status
from ninja.pagination import paginate

from webapp.api.common.authentication import ADMINS, administrator
from webapp.api.common.schemas import Input, Paged
from webapp.core.errors import NotFound
from webapp.core.tokens import hash_token
from webapp.hosts.installer import install_line
from webapp.hosts.keys import signing_key
from webapp.hosts.models import EnrolmentToken
from webapp.hosts.selectors import checked_name, enrolment_called, known_host, open_enrolments
from webapp.hosts.services import issue_enrolment_token, withdraw_enrolment_token

router = Router(tags=["hosts"])


class NewEnrolment(Input):
    """`slug`: the new host's name, "" for its hostname; `again`: a known host to enrol again."""

    slug: str = ""
    again: str = ""


class EnrolmentMade(Schema):
    """`line`: the command for a root shell on the host, with the token; it checks what it downloads."""

    reference: str
    token: str  # shown once
    line: str
    fingerprint: str  # of the key that signs orders
    expires_at: datetime


class EnrolmentOut(Schema):
    reference: str
    host_slug: str
    again: str
    created_at: datetime
    expires_at: datetime

    @staticmethod
    def resolve_again(token: EnrolmentToken) -> str:
        return token.host.slug if token.host else ""


@router.get("/enrolments", response=list[EnrolmentOut], auth=ADMINS)
@paginate(Paged)
def enrolments(request: HttpRequest) -> QuerySet[EnrolmentToken]:
    """Valid one-time tokens."""
    administrator(request)
    return open_enrolments()


@router.post("/enrolments", response=EnrolmentMade, auth=ADMINS)
def make_enrolment(request: HttpRequest, body: NewEnrolment) -> EnrolmentMade:
    """Create a one-time token, and the command that installs and enrols the worker on a host."""
    by = administrator(request)
    again = known_host(body.again) if body.again else None
    slug = checked_name(body.slug) if body.slug and again is None else ""
    token = issue_enrolment_token(by=by, slug=slug, host=again)
    made, (fingerprint, _) = EnrolmentToken.objects.get(token_hash=hash_token(token)), signing_key()
    return EnrolmentMade(
        reference=made.reference, token=token, line=install_line(token=token, key=fingerprint, again=again is not None),
        fingerprint=fingerprint, expires_at=made.expires_at,
    )  # fmt: skip


@router.delete("/enrolments/{reference}", response={204: None}, auth=ADMINS)
def withdraw_enrolment(request: HttpRequest, reference: str) -> Status[None]:
    """Revoke the token."""
    by, found = administrator(request), enrolment_called(reference)
    if found is None:
        raise NotFound("enrolment_unknown", f"There is no one-time token {reference}.")
    withdraw_enrolment_token(invitation=found, by=by)
    return Status(204, None)
