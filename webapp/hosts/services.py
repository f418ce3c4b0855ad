"""Services for hosts: enrolment, registration, and the time of the last message."""

import hashlib
from datetime import datetime, timedelta

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Exists
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.core.tokens import hash_token, new_token
from webapp.hosts import broker
from webapp.hosts.inventory.differences import differences
from webapp.hosts.inventory.lock_groups import lock_keys
from webapp.hosts.inventory.reading import read_inventory
from webapp.hosts.inventory.wording import summary
from webapp.hosts.keys import endorsements, public_keys
from webapp.hosts.models import EnrolmentToken, Host, HostInventory, HostState, InventoryContent, Target
from webapp.hosts.names import free_slug, plain_slug
from webapp.hosts.sessions import second_worker_words
from worker.contract.base import common_version, encode
from worker.contract.greetings import Enrol, EnrolReply, Hello, HelloReply
from worker.contract.inventory import Inventory, PolicyTarget

# The time of the last message is written at most this often, so not every report causes a write.
SEEN_EVERY_SECONDS = 10
MAX_CHANGES = 200  # sentences about the changes of an inventory
MAX_INVENTORY_BYTES = 2 * 1024 * 1024
MAX_INVENTORIES_A_DAY = 50
MAX_TARGETS = 5000  # of a host, with those that its policy listed earlier
_UPSERTED = [
    "kind", "path", "lock_keys", "model", "firmware", "device", "opens", "size_bytes",
    "file_system", "test_file_bytes", "logical_block_bytes",
    "destroy", "destroy_signatures", "max_write_bytes", "purges", "settings_allowed", "present", "problem", "in_policy",
    "drives", "warnings",
]  # fmt: skip


class EnrolRefused(Refusal):
    """The one-time token is invalid."""


@transaction.atomic
def issue_enrolment_token(*, by: User | None, slug: str = "", host: Host | None = None) -> str:
    """Create a one-time token for a new host, valid once and for an hour. `slug` "": the host name becomes its name.

    With `host` it enrols that host again: its id, targets and results stay, its old token is no longer valid.
    """
    plain, token_hash = new_token()
    invitation = EnrolmentToken.objects.create(
        token_hash=token_hash,
        host=host,
        host_slug=plain_slug(slug) if slug else "",
        created_by=by,
        expires_at=timezone.now() + timedelta(seconds=settings.ENROLMENT_SECONDS),
    )
    audit(by=by, action="host.enrolment_create", on=invitation, label=host.slug if host else slug or "any name")
    return plain


@transaction.atomic
def withdraw_enrolment_token(*, invitation: EnrolmentToken, by: User | None) -> bool:
    """Make the token invalid. False if it was used or had expired."""
    now = timezone.now()
    open_ones = EnrolmentToken.objects.filter(pk=invitation.pk, used_at=None, expires_at__gt=now)
    if open_ones.update(expires_at=now) != 1:
        return False
    audit(by=by, action="host.enrolment_revoke", on=invitation, label=invitation.host_slug or "any name")
    return True


@transaction.atomic
def enrol(message: Enrol) -> EnrolReply:
    """Create a host, its token and its broker user for a one-time token. Raises EnrolRefused or VersionMismatch.

    Only the reply has the host's two secrets.
    """
    contract = common_version(oldest=message.oldest_contract, newest=message.newest_contract)
    invitation = _claim_token(message.token)
    plain, token_hash = new_token()
    keys = public_keys()
    host = _enrol_again(invitation.host, message) if invitation.host else _create_host(invitation, message)
    Host.objects.filter(pk=host.pk).update(token_hash=token_hash, contract=contract, trusted_keys=list(keys))
    EnrolmentToken.objects.filter(pk=invitation.pk).update(host=host)
    audit(by=invitation.created_by, action="host.enrol", on=host, detail={"hostname": message.hostname})
    return EnrolReply(
        host=str(host.id),
        host_name=host.slug,
        host_token=plain,
        broker_url=broker.admit(host=host),
        public_keys=keys,
        contract=contract,
    )


def _claim_token(token: str) -> EnrolmentToken:
    """Claim the token with one conditional UPDATE: of two simultaneous requests one succeeds."""
    now = timezone.now()
    tokens = EnrolmentToken.objects.filter(token_hash=hash_token(token))
    if tokens.filter(used_at=None, expires_at__gt=now).update(used_at=now) != 1:
        raise EnrolRefused(
            "enrolment_token_invalid",
            "This enrolment token is unknown, expired or already used. Create a new one; it is valid for one hour.",
        )
    return tokens.select_related("created_by", "host").get()


def _create_host(invitation: EnrolmentToken, message: Enrol) -> Host:
    return Host.objects.create(
        slug=free_slug(invitation.host_slug or message.hostname),
        token_hash=hash_token(message.token),  # replaced below; the column is not null
        hostname=message.hostname,
        worker_version=message.worker_version[:40],
    )


def _enrol_again(host: Host, message: Enrol) -> Host:
    """Enrol a known host again, e.g. after reinstallation or revocation; its results stay."""
    Host.objects.filter(pk=host.pk).update(
        state=HostState.ACTIVE,
        maintenance_note="",
        archived_at=None,
        next_token_hash=None,
        rotation_requested_at=None,
        session="",
        former_session="",
        hostname=message.hostname,
        worker_version=message.worker_version[:40],
    )
    return host


def note_heard(*, host: Host, spool_bytes: int) -> None:
    """Record the time of this message and the number of unconfirmed bytes on the host's disk."""
    now = timezone.now()
    stale = now - timedelta(seconds=SEEN_EVERY_SECONDS)
    if host.last_seen_at is None or host.last_seen_at < stale or host.spool_bytes != spool_bytes:
        Host.objects.filter(pk=host.pk).update(last_seen_at=now, spool_bytes=spool_bytes)


@transaction.atomic
def register_host(*, host: Host, message: Hello) -> HelloReply:
    """Store a registration. Raises VersionMismatch, or Refusal if the policy lists an id twice."""
    contract = common_version(oldest=message.oldest_contract, newest=message.newest_contract)
    now = timezone.now()
    Host.objects.filter(pk=host.pk).update(
        state_disk_full=message.state_disk_full,
        hostname=message.inventory.hostname or host.hostname,
        last_seen_at=now,
        boot_id=message.boot_id[:64],
        worker_version=message.worker_version[:40],
        contract=contract,
        capabilities=msgspec.to_builtins(message.capabilities),
        settings_allowed=list(message.host_settings),
        health=msgspec.to_builtins(message.health),
        trusted_keys=list(message.trusted_keys),
        policy_problem=message.policy_problem,
        clock_ahead_s=message.at - now.timestamp(),
    )
    record_inventory(host, message.inventory, at=now)
    _record_targets(host, message)
    return HelloReply(
        contract=contract,
        server_time=now.timestamp(),
        public_keys=public_keys(),
        endorsements=endorsements(),
        token_due=host.rotation_requested_at is not None,
        message=second_worker_words(host),
    )


def record_inventory(host: Host, inventory: Inventory, *, at: datetime) -> None:
    """Store the inventory if it differs from the newest one; equal contents are stored once.

    Of more than MAX_INVENTORIES_A_DAY only the newest is kept. Raises Refusal inventory_too_large.
    """
    text = encode(inventory)
    if len(text) > MAX_INVENTORY_BYTES:
        raise Refusal("inventory_too_large", f"The inventory has {len(text)} bytes; at most {MAX_INVENTORY_BYTES}.")
    digest = hashlib.sha256(text).hexdigest()
    latest = HostInventory.objects.filter(host=host).order_by("-taken_at").first()
    if latest is not None and latest.content_id == digest:
        return
    before = read_inventory(latest)
    if before is not None and not differences(before, inventory):
        return
    InventoryContent.objects.bulk_create(
        [InventoryContent(digest=digest, facts=msgspec.to_builtins(inventory))], ignore_conflicts=True
    )
    changes = summary(before, inventory)[:MAX_CHANGES] if before else None
    lately = HostInventory.objects.filter(host=host, taken_at__gt=at - timedelta(days=1)).count()
    if latest is None or lately < MAX_INVENTORIES_A_DAY:
        HostInventory.objects.create(host=host, content_id=digest, taken_at=at, changes=changes)
    else:
        _replace(latest, digest, changes, at)


def _replace(latest: HostInventory, digest: str, changes: list[str] | None, at: datetime) -> None:
    former, latest.content_id, latest.taken_at = latest.content_id, digest, at
    latest.changes = [*(latest.changes or []), *(changes or [])][:MAX_CHANGES]
    latest.save(update_fields=["content", "taken_at", "changes"])
    InventoryContent.objects.filter(~Exists(HostInventory.objects.filter(content=former)), pk=former).delete()


def _record_targets(host: Host, message: Hello) -> None:
    slugs = [target.id for target in message.targets]
    if len(set(slugs)) != len(slugs):
        raise Refusal("policy_id_twice", "The policy lists a target id twice. Give each target a different id.")
    if host.targets.count() > MAX_TARGETS:
        raise Refusal("too_many_targets", f"This host has listed more than {MAX_TARGETS} targets. Remove the host.")
    found = lock_keys(host, message.targets, message.inventory)
    targets = [_target(host, target, own) for target, own in zip(message.targets, found, strict=True)]
    keys = {target.slug: target.lock_keys for target in targets}
    for pool in targets:
        if pool.drives:
            pool.lock_keys = sorted({key for drive in pool.drives for key in keys.get(drive, [])})
    _retire_targets(host, {_identity(target) for target in targets})
    Target.objects.bulk_create(
        targets, update_conflicts=True, unique_fields=["host", "slug", "stable_id", "serial"], update_fields=_UPSERTED
    )


def _identity(target: Target) -> tuple[str, str, str]:
    return target.slug, target.stable_id, target.serial


def _retire_targets(host: Host, listed: set[tuple[str, str, str]]) -> None:
    """Targets that the policy no longer lists, or lists with another drive, stay: results refer to them."""
    gone = [target.pk for target in host.targets.filter(in_policy=True) if _identity(target) not in listed]
    Target.objects.filter(pk__in=gone).update(in_policy=False, present=False)


def _target(host: Host, target: PolicyTarget, keys: list[str]) -> Target:
    return Target(
        host=host,
        slug=target.id[:63],
        kind=target.kind.value,
        path=target.path,
        stable_id=target.stable_id,
        serial=target.serial,
        lock_keys=keys,
        model=target.model,
        firmware=target.firmware,
        device=target.device,
        opens=target.opens or "",
        size_bytes=target.size_bytes,
        file_system=target.file_system,
        test_file_bytes=target.test_file_bytes,
        logical_block_bytes=target.logical_block_bytes,
        destroy=target.destroy,
        destroy_signatures=list(target.destroy_signatures),
        max_write_bytes=target.max_write_bytes,
        purges=msgspec.to_builtins(target.purges),
        settings_allowed=list(target.settings),
        present=target.present,
        problem=target.problem,
        warnings=list(target.warnings),
        in_policy=True,
        drives=list(target.drives),
    )
