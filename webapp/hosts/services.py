"""Writes about hosts: enrolment, greetings, and who may speak for one."""

import hashlib
from datetime import UTC, datetime, timedelta

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.text import slugify

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.core.tokens import hash_token, new_token
from webapp.hosts.keys import public_keys
from webapp.hosts.lock_groups import lock_group
from webapp.hosts.models import EnrolmentToken, Host, HostSnapshot, HostState, Snapshot, Target
from worker.contract.base import common_version, encode
from worker.contract.inventory import Inventory, PolicyTarget
from worker.contract.reports import Enrol, EnrolReply, Hello, HelloReply

# Being seen is written down at most this often, so that a report a second is not a write a second.
SEEN_EVERY_SECONDS = 10
_UPSERTED = [
    "kind", "path", "lock_group", "model", "firmware", "device", "size_bytes",
    "destroy", "settings_allowed", "present", "problem", "in_policy",
]  # fmt: skip


class EnrolRefused(Refusal):
    """The one-time token opens nothing."""


def issue_enrolment_token(*, by: User | None, slug: str = "") -> str:
    """The plain one-time token for a new host, good once and for an hour. `slug` "" lets its hostname decide."""
    plain, token_hash = new_token()
    EnrolmentToken.objects.create(
        token_hash=token_hash,
        host_slug=_plain_slug(slug) if slug else "",
        created_by=by,
        expires_at=timezone.now() + timedelta(seconds=settings.ENROLMENT_SECONDS),
    )
    audit(by=by, action="host.invite", subject=slug or "any")
    return plain


@transaction.atomic
def enrol(message: Enrol, *, broker_url: str) -> EnrolReply:
    """Trade a one-time token for a host and its own token. Raises EnrolRefused or VersionMismatch."""
    contract = common_version(oldest=message.oldest_contract, newest=message.newest_contract)
    invitation = _use_up(message.token)
    plain, token_hash = new_token()
    host = Host.objects.create(
        slug=_free_slug(invitation.host_slug or message.hostname),
        token_hash=token_hash,
        hostname=message.hostname,
        worker_version=message.worker_version[:40],
        contract=contract,
    )
    audit(by=invitation.created_by, action="host.enrol", subject=host.slug, detail={"hostname": message.hostname})
    return EnrolReply(
        host=str(host.id),
        host_name=host.slug,
        host_token=plain,
        broker_url=broker_url,
        public_keys=public_keys(),
        contract=contract,
    )


def _use_up(token: str) -> EnrolmentToken:
    """Claim the token by one conditional UPDATE: of two that try at once, one wins."""
    now = timezone.now()
    tokens = EnrolmentToken.objects.filter(token_hash=hash_token(token))
    if tokens.filter(used_at=None, expires_at__gt=now).update(used_at=now) != 1:
        raise EnrolRefused(
            "enrolment_token_invalid",
            "This enrolment token is unknown, expired or already used. Make a new one: it is good once, for an hour.",
        )
    return tokens.select_related("created_by").get()


def _plain_slug(name: str) -> str:
    return slugify(name.replace(".", "-"))[:50].strip("-_") or "host"


def _free_slug(name: str) -> str:
    """The name as a slug, with a number behind it if another host has it."""
    wanted = _plain_slug(name)
    taken = set(Host.objects.filter(slug__startswith=wanted).values_list("slug", flat=True))
    candidates = [wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 3))]
    return next(slug for slug in candidates if slug not in taken)


def authenticate_host(token: str) -> Host | None:
    """The host whose token this is; None for an unknown or revoked one. Always one query."""
    return Host.objects.filter(token_hash=hash_token(token)).exclude(state=HostState.REVOKED).first()


def touch_host(*, host: Host) -> None:
    """Note that the host was heard just now."""
    now = timezone.now()
    stale = now - timedelta(seconds=SEEN_EVERY_SECONDS)
    if host.last_seen_at is None or host.last_seen_at < stale:
        Host.objects.filter(Q(last_seen_at=None) | Q(last_seen_at__lt=stale), pk=host.pk).update(last_seen_at=now)


@transaction.atomic
def record_hello(*, host: Host, message: Hello) -> HelloReply:
    """Keep what the host says about itself. Raises VersionMismatch, or Refusal for a policy that lists an id twice."""
    contract = common_version(oldest=message.oldest_contract, newest=message.newest_contract)
    now = timezone.now()
    Host.objects.filter(pk=host.pk).update(
        hostname=message.inventory.hostname or host.hostname,
        last_seen_at=now,
        boot_id=message.boot_id[:64],
        worker_version=message.worker_version[:40],
        contract=contract,
        capabilities=msgspec.to_builtins(message.capabilities),
    )
    _record_snapshot(host, message.inventory, at=now)
    _record_targets(host, message)
    return HelloReply(contract=contract, server_time=now.timestamp(), public_keys=public_keys())


def _record_snapshot(host: Host, inventory: Inventory, *, at: datetime) -> None:
    """One row for each change, the facts themselves stored once."""
    digest = hashlib.sha256(encode(inventory)).hexdigest()
    latest = HostSnapshot.objects.filter(host=host).order_by("-taken_at").first()
    if latest is not None and latest.snapshot_id == digest:
        return
    Snapshot.objects.bulk_create([Snapshot(digest=digest, facts=msgspec.to_builtins(inventory))], ignore_conflicts=True)
    HostSnapshot.objects.create(host=host, snapshot_id=digest, taken_at=at)


def _record_targets(host: Host, message: Hello) -> None:
    slugs = [target.id for target in message.targets]
    if len(set(slugs)) != len(slugs):
        raise Refusal("policy_id_twice", "The policy lists the same target id twice. Give each target its own id.")
    targets = [_target(host, target, message.inventory) for target in message.targets]
    _retire_targets(host, {_identity(target) for target in targets})
    Target.objects.bulk_create(
        targets, update_conflicts=True, unique_fields=["host", "slug", "stable_id", "serial"], update_fields=_UPSERTED
    )


def _identity(target: Target) -> tuple[str, str, str]:
    return target.slug, target.stable_id, target.serial


def _retire_targets(host: Host, listed: set[tuple[str, str, str]]) -> None:
    """What the policy no longer lists, or lists with another drive, stays for the results that point to it."""
    gone = [target.pk for target in host.targets.filter(in_policy=True) if _identity(target) not in listed]
    Target.objects.filter(pk__in=gone).update(in_policy=False, present=False)


def _target(host: Host, target: PolicyTarget, inventory: Inventory) -> Target:
    return Target(
        host=host,
        slug=target.id[:63],
        kind=target.kind.value,
        path=target.path,
        stable_id=target.stable_id,
        serial=target.serial,
        lock_group=lock_group(host, target, inventory),
        model=target.model,
        firmware=target.firmware,
        device=target.device,
        size_bytes=target.size_bytes,
        destroy=target.destroy,
        settings_allowed=list(target.settings),
        present=target.present,
        problem=target.problem,
        in_policy=True,
    )


@transaction.atomic
def revoke_host(*, host: Host, by: User | None) -> None:
    """From now on the host's token opens nothing. What it was doing is given up by the next tick."""
    Host.objects.filter(pk=host.pk).update(state=HostState.REVOKED)
    audit(by=by, action="host.revoke", subject=host.slug)


def utc(seconds: float) -> datetime:
    """A Unix time (s) of the contract as a datetime. Raises ValueError where it is no date."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{seconds} is no Unix time") from error
