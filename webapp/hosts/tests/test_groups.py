"""Groups of hosts: created, changed, refused in words, deleted."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry, Role, User
from webapp.hosts.groups import MAX_MEMBERS, MemberSpec, change_group, create_group, delete_group
from webapp.hosts.models import GroupMember, Host, HostGroup
from webapp.hosts.selectors import known_group, trouble_of
from webapp.hosts.services import remove_host, rename_host, revoke_host
from webapp.schedules.models import Schedule, Trigger
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.runs import first_look_run
from webapp.tests.refusals import refuses

pytestmark = pytest.mark.django_db


@pytest.fixture
def by() -> User:
    return a_user("olga", Role.OPERATOR)


@pytest.fixture
def hosts() -> list[Host]:
    made = [a_host(name) for name in ("storage1", "storage2")]
    for host in made:
        storage1_scratch(host)
        storage1_drive(host)
    return made


BOTH = (MemberSpec("storage2", ["scratch"], "broadcom"), MemberSpec("storage1", ["scratch", "nvme0"], "adaptec"))


def said(group: HostGroup) -> list[tuple[str, str, list[str]]]:
    members = known_group(group.slug).members.all()
    return [(one.host.slug, one.label, [target.slug for target in one.targets.all()]) for one in members]


def refusal(members: Sequence[MemberSpec], **changes: Any) -> tuple[str, str]:
    with pytest.raises(Refusal) as caught:
        create_group(**({"title": "Both", "members": members, "by": None} | changes))
    assert not HostGroup.objects.exists()
    return caught.value.code, str(caught.value)


def a_schedule(group: HostGroup, by: User, **changes: Any) -> Schedule:
    version = changes.pop("version", None) or first_look()
    fields = {"name": "Nightly", "trigger": Trigger.CRON, "cron": "0 2 * * *"} | changes
    return Schedule.objects.create(owner=by, group=group, version=version, **fields)


def test_it_keeps_hosts_in_order_with_targets_and_labels(by: User, hosts: list[Host]) -> None:
    group = create_group(title="  Both   racks ", members=BOTH, by=by)
    assert (group.slug, group.title) == ("both-racks", "Both racks")
    assert said(group) == [("storage2", "broadcom", ["scratch"]), ("storage1", "adaptec", ["nvme0", "scratch"])]
    entry = AuditEntry.objects.get(action="group.create")
    assert entry.detail["hosts"] == ["broadcom: storage2/scratch", "adaptec: storage1/scratch, storage1/nvme0"]
    assert create_group(title="Both racks", members=BOTH[:1], by=by).slug == "both-racks-2"
    assert create_group(title="New", members=BOTH[:1], by=by).slug == "new-2"  # /groups/new/ is another page


def test_it_replaces_title_and_members(by: User, hosts: list[Host]) -> None:
    group = create_group(title="Both", members=BOTH, by=by)
    swapped = [MemberSpec("storage1", ["nvme0"], "broadcom"), MemberSpec("storage2", ["scratch"])]
    change_group(group=group, title="Swapped", members=swapped, by=by)
    assert said(group) == [("storage1", "broadcom", ["nvme0"]), ("storage2", "storage2", ["scratch"])]
    group.refresh_from_db()
    assert (group.slug, group.title) == ("both", "Swapped")
    with pytest.raises(Refusal):
        change_group(group=group, title="Empty", members=[], by=by)
    assert len(said(group)) == 2


def test_it_says_why_members_cannot_be(hosts: list[Host]) -> None:
    def of(*members: MemberSpec) -> tuple[str, str]:
        return refusal(members)

    first = MemberSpec("storage1", ["scratch"], "a")
    assert of() == ("members_refused", "The host group has no hosts. Add at least one.")
    assert "The host storage1 is in the group twice" in of(first, MemberSpec("storage1", ["nvme0"], "b"))[1]
    assert "The label “a” is used twice" in of(first, MemberSpec("storage2", ["scratch"], " a "))[1]
    assert "used twice" in of(first, MemberSpec("storage2", ["scratch"], "a"))[1]
    assert of(MemberSpec("storage1", [], "a")) == ("members_refused", "Choose at least one target of storage1.")
    assert of(MemberSpec("storage1", ["storage2/scratch"]))[0] == "target_unknown"
    assert of(MemberSpec("elsewhere", ["scratch"])) == ("host_unknown", "There is no host `elsewhere`.")
    assert of(MemberSpec("\0", ["scratch"]))[0] == "host_unknown"
    assert of(MemberSpec("storage1", ["\0"]))[0] == "target_unknown"
    for label in ("", " ", "x" * 64, "a\0b", "a\u202eb"):
        code, words = of(MemberSpec("storage1", ["scratch"], label))
        assert (code, "The label of storage1" in words) == ("members_refused", True), label
    assert "at most 100" in of(*[first] * (MAX_MEMBERS + 1))[1]
    hosts[0].targets.filter(slug="nvme0").update(in_policy=False)
    assert "storage1/nvme0 is no longer in the policy file" in of(MemberSpec("storage1", ["nvme0"]))[1]


def test_it_says_why_title_and_name_cannot_be(hosts: list[Host]) -> None:
    for title in ("", "  ", "x" * 121, "a\0b"):
        assert refusal(BOTH, title=title)[0] == "title_refused", title
    for slug in ("", "Both", "a b", "new", "-a", "x" * 64, "ä", "a\0"):
        assert refusal(BOTH, slug=slug)[0] == "slug_refused", slug
    create_group(title="Both", members=BOTH, by=None, slug="both")
    with refuses("group_exists"):
        create_group(title="Other", members=BOTH, by=None, slug="both")


def test_a_hundred_hosts_fit_with_a_fixed_number_of_queries(
    hosts: list[Host], django_assert_max_num_queries: Any
) -> None:
    members = list(BOTH)
    for number in range(MAX_MEMBERS - 2):
        storage1_scratch(a_host(f"h{number}"))
        members.append(MemberSpec(f"h{number}", ["scratch"]))
    with django_assert_max_num_queries(14):
        group = create_group(title="All", members=members, by=None)
    assert len(said(group)) == MAX_MEMBERS


def test_another_name_of_a_host_breaks_nothing(by: User, hosts: list[Host]) -> None:
    group = create_group(title="Both", members=BOTH, by=by)
    rename_host(host=hosts[1], slug="rack4", by=by)
    assert said(group)[0] == ("rack4", "broadcom", ["scratch"])
    change_group(group=group, title="Both", members=BOTH, by=by)  # storage2 is a name that it had
    assert said(group)[0] == ("rack4", "broadcom", ["scratch"])
    with pytest.raises(Refusal, match="rack4 is in the group twice"):
        change_group(group=group, title="Both", members=[*BOTH, MemberSpec("rack4", ["nvme0"])], by=by)


def test_it_marks_what_can_no_longer_be_used(by: User, hosts: list[Host]) -> None:
    group = create_group(title="Both", members=BOTH, by=by)
    assert [trouble_of(member) for member in known_group("both").members.all()] == [[], []]
    first_look_run(first_look(), list(hosts[1].targets.all()), repeats=1)
    hosts[0].targets.filter(slug="nvme0").update(in_policy=False)
    revoke_host(host=hosts[1], by=by)
    revoked, gone = known_group(group.slug).members.all()
    assert trouble_of(revoked) == ["The host is revoked."]
    assert trouble_of(gone) == ["nvme0 is no longer in the policy file."]
    remove_host(host=hosts[1], typed="storage2", by=by)
    assert trouble_of(known_group(group.slug).members.all()[0]) == ["The host was removed."]


def test_it_is_not_deleted_while_a_schedule_uses_it(by: User, hosts: list[Host]) -> None:
    group = create_group(title="Both", members=BOTH, by=by)
    schedule = a_schedule(group, by)
    with pytest.raises(Refusal) as caught:
        delete_group(group=group, by=by)
    assert caught.value.code == "group_in_use"
    assert "in use: schedule “Nightly”. Change or delete that first." in str(caught.value)
    assert len(said(group)) == 2
    Schedule.objects.filter(pk=schedule.pk).update(enabled=False, deleted_at=timezone.now() - timedelta(1))
    delete_group(group=group, by=by)
    assert not HostGroup.objects.exists()
    assert not GroupMember.objects.exists()
    assert AuditEntry.objects.filter(action="group.delete", label="both").count() == 1
    delete_group(group=group, by=by)
    assert AuditEntry.objects.filter(action="group.delete").count() == 1


def test_a_deleted_schedule_keeps_its_group_where_another_one_uses_it(by: User, hosts: list[Host]) -> None:
    group = create_group(title="Both", members=BOTH, by=by)
    version = first_look()
    deleted = a_schedule(group, by, version=version, name="Old", enabled=False, deleted_at=timezone.now())
    a_schedule(group, by, version=version)
    with pytest.raises(Refusal):
        delete_group(group=group, by=by)
    deleted.refresh_from_db()
    assert deleted.group == group
