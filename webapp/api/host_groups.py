"""Host groups: list, read, create, change, delete."""

from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Router, Schema, Status
from ninja.pagination import paginate

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input, Paged
from webapp.hosts.groups import MAX_MEMBERS, MemberSpec, change_group, create_group, delete_group
from webapp.hosts.models import GroupMember, HostGroup
from webapp.hosts.selectors import host_groups, known_group, trouble_of

router = Router(tags=["hosts"])
MAX_TARGETS = 100  # of a member


class MemberIn(Input):
    """`targets`: names of the host's targets. Without `label`, the host's name is the label."""

    host: str
    targets: list[str] = Field(max_length=MAX_TARGETS)
    label: str | None = None


class GroupIn(Input):
    title: str
    members: list[MemberIn] = Field(max_length=MAX_MEMBERS)

    def specs(self) -> list[MemberSpec]:
        return [MemberSpec(member.host, member.targets, member.label) for member in self.members]


class NewGroupIn(GroupIn):
    """Without `slug`, it is derived from the title."""

    slug: str | None = None


class MemberOut(Schema):
    """`problems`: why the host or a target of it can no longer be used."""

    host: str
    targets: list[str]
    label: str
    problems: list[str]

    @staticmethod
    def resolve_host(member: GroupMember) -> str:
        return member.host.slug

    @staticmethod
    def resolve_targets(member: GroupMember) -> list[str]:
        return [target.slug for target in member.targets.all()]

    @staticmethod
    def resolve_problems(member: GroupMember) -> list[str]:
        return trouble_of(member)


class GroupOut(Schema):
    slug: str
    title: str
    created_at: datetime
    members: list[MemberOut]

    @staticmethod
    def resolve_members(group: HostGroup) -> list[GroupMember]:
        return list(group.members.all())


@router.get("/groups", response=list[GroupOut])
@paginate(Paged)
def groups(request: HttpRequest) -> QuerySet[HostGroup]:
    """Host groups with their hosts in order."""
    return host_groups()


@router.post("/groups", response={201: GroupOut}, auth=OPERATORS)
def new_group(request: HttpRequest, body: NewGroupIn) -> Status[HostGroup]:
    """Create a host group."""
    by = operator(request)
    made = create_group(title=body.title, members=body.specs(), by=by, slug=body.slug)
    return Status(201, known_group(made.slug))


@router.get("/groups/{slug}", response=GroupOut)
def group(request: HttpRequest, slug: str) -> HostGroup:
    """A host group with its hosts in order."""
    return known_group(slug)


@router.put("/groups/{slug}", response=GroupOut, auth=OPERATORS)
def replace_group(request: HttpRequest, slug: str, body: GroupIn) -> HostGroup:
    """Replace the title and all members."""
    by = operator(request)
    change_group(group=known_group(slug), title=body.title, members=body.specs(), by=by)
    return known_group(slug)


@router.delete("/groups/{slug}", response={204: None}, auth=OPERATORS)
def remove_group(request: HttpRequest, slug: str) -> Status[None]:
    """Delete a host group. Refused while a schedule uses it. Hosts and results stay."""
    by = operator(request)
    delete_group(group=known_group(slug), by=by)
    return Status(204, None)
