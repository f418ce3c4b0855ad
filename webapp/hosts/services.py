"""Services for hosts: enrolment, registration, and the time of the last message."""

import hashlib
import logging
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from django.conf import settings
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import Exists, ProtectedError
from django.utils import timezone

from webapp.core import tally
from webapp.core.errors import Refusal, uuid_or_none
from webapp.core.models import Counter, User
from webapp.core.services import audit
from webapp.core.throttle import Rate
from webapp.core.tokens import hash_token, new_token
from webapp.hosts import credentials
from webapp.hosts.inventory.diff import differences, summary
from webapp.hosts.inventory.lock_groups import lock_keys
from webapp.hosts.inventory.store import read_inventory
from webapp.hosts.keys import endorsements, public_keys
from webapp.hosts.models import (
    EnrolmentToken,
    FormerName,
    Host,
    HostInventory,
    HostState,
    InventoryContent,
    Target,
    WorkerLogLine,
)
from webapp.hosts.selectors import checked_name, free_host_slug, plain_slug
from webapp.hosts.sessions import second_worker_words
from worker.contract.base import common_version, encode
from worker.contract.greetings import Enrol, EnrolReply, Hello, HelloReply
from worker.contract.inventory import Inventory, PolicyTarget
from worker.contract.reports import LogLevel, LogLine, WorkerLog

# The lifecycle of a host: rename, maintenance, revoke, remove, restore.
#
#     active  <->  maintenance
#       |  ^           |
#       |  enrolled again (a new token, the same host)
#       v  |           v
#        revoked  <->  archived (hidden)
#           |
#           deleted, if nothing refers to it
#
# Orders, reports and results refer to a host by its id, so no change affects the results.

MAX_NOTE_LENGTH = 500


@transaction.atomic
def rename_host(*, host: Host, slug: str, by: User | None) -> bool:
    """Rename the host; addresses with the old name lead to it. False if it already has that name.

    Raises Refusal host_name_bad or host_name_taken.
    """
    locked = Host.objects.select_for_update().get(pk=host.pk)
    before = locked.slug
    if slug == before:
        return False
    checked_name(slug, host=locked)
    FormerName.objects.filter(slug=slug, host=locked).delete()
    FormerName.objects.create(slug=before, host=locked)
    try:
        with transaction.atomic():
            Host.objects.filter(pk=host.pk).update(slug=slug)
    except IntegrityError as error:
        raise Refusal("host_name_taken", f"A host called {slug} already exists. Choose another name.") from error
    host.slug = slug
    audit(by=by, action="host.rename", on=host, detail={"before": before})
    return True


@transaction.atomic
def begin_maintenance(*, host: Host, note: str, by: User | None) -> None:
    """Start maintenance: the host gets no new trials; the current trial ends, and settings are restored.

    A second call changes the note. Raises Refusal host_revoked, note_too_long.
    """
    note = note.strip()
    if len(note) > MAX_NOTE_LENGTH:
        raise Refusal("note_too_long", f"The note has {len(note)} characters; the maximum is {MAX_NOTE_LENGTH}.")
    usable = Host.objects.filter(pk=host.pk, state__in=(HostState.ACTIVE, HostState.MAINTENANCE))
    if usable.update(state=HostState.MAINTENANCE, maintenance_note=note) != 1:
        raise Refusal("host_revoked", f"{host} is revoked and gets no orders. Enrol it again first.")
    audit(by=by, action="host.maintenance_start", on=host, detail={"note": note})


@transaction.atomic
def end_maintenance(*, host: Host, by: User | None) -> bool:
    """End maintenance: the host gets orders again. False if it was not in maintenance."""
    ended = Host.objects.filter(pk=host.pk, state=HostState.MAINTENANCE)
    if ended.update(state=HostState.ACTIVE, maintenance_note="") != 1:
        return False
    audit(by=by, action="host.maintenance_end", on=host)
    return True


@transaction.atomic
def revoke_host(*, host: Host, by: User | None) -> bool:
    """Revoke the host's token and its broker user. The next tick ends its attempts.

    False if it was revoked before.
    """
    if not _shut_out(host):
        return False
    audit(by=by, action="host.revoke", on=host)
    return True


def _shut_out(host: Host) -> bool:
    """Delete the token's hash, so no later change of state can make the token valid again."""
    standing = Host.objects.filter(pk=host.pk).exclude(state=HostState.REVOKED)
    changed = standing.update(
        state=HostState.REVOKED,
        token_hash=hash_token(secrets.token_hex()),
        next_token_hash=None,
        rotation_requested_at=None,
        maintenance_note="",
    )
    if changed == 1:
        credentials.forget(host=host)
    return changed == 1


@transaction.atomic
def remove_host(*, host: Host, typed: str, by: User | None) -> bool:
    """Delete a host that nothing refers to (True), or revoke and hide it (False).

    `typed` is the host's name, typed as a confirmation. Raises Refusal confirmation_wrong.
    """
    if typed.strip() != host.slug:
        raise Refusal("confirmation_wrong", f"To remove {host.slug}, type its exact name. Nothing was changed.")
    if _deleted(host):
        audit(by=by, action="host.delete", on=host, detail={"hostname": host.hostname})
        return True
    _shut_out(host)
    if Host.objects.filter(pk=host.pk, archived_at=None).update(archived_at=timezone.now()):
        host.targets.update(in_policy=False, present=False)
        audit(by=by, action="host.remove", on=host)
    return False


def _deleted(host: Host) -> bool:
    """Delete the host if possible: the database refuses while a trial or an order refers to it."""
    for _ in range(2):
        try:
            with transaction.atomic():
                credentials.forget(host=host)
                Host.objects.get(pk=host.pk).delete()
                connection.check_constraints()  # otherwise the commit checks them, which is too late to hide the host
                return True
        except ProtectedError:
            return False
        except IntegrityError:  # another request has just added a row that refers to the host: look at it too
            continue
    return False


@transaction.atomic
def bring_back(*, host: Host, by: User | None) -> bool:
    """Show a removed host again. Its token stays revoked, so it must be enrolled again. False if it was not removed."""
    if Host.objects.filter(pk=host.pk).exclude(archived_at=None).update(archived_at=None) != 1:
        return False
    audit(by=by, action="host.restore", on=host)
    return True


# The log lines in a worker's reports. Only the newest lines of each host are stored.
#
# Lines that come faster than RATE are left out: PostgreSQL keeps deleted rows on disk until a vacuum, so a limit of
# rows alone lets the table grow.

log = logging.getLogger(__name__)

LINES_KEPT = 2000  # of each host
# In bytes of each host. The burst is more than LINES_KEPT usual lines, which a worker sends after an outage.
RATE = Rate(burst=2 * 1024**2, per_s=10 * 1024)
_ROW_BYTES = 200  # of a line besides its text, with its indexes
LEFT_OUT = "log_too_fast"  # label of the counter of refused reports


def keep_log(*, host: Host, shipped: WorkerLog) -> None:
    """Store new lines. A line that cannot be stored does not cause the report to be refused."""
    lines = _within_rate(host, shipped.lines)
    if not lines:
        return
    try:
        with transaction.atomic():
            rows = [_row(host, shipped.session, line) for line in lines]
            WorkerLogLine.objects.bulk_create(rows, ignore_conflicts=True)
            _prune(host)
    except (DataError, IntegrityError):
        log.exception("host %s: log lines could not be stored", host)


def _within_rate(host: Host, lines: Sequence[LogLine]) -> list[LogLine]:
    """The lines up to the limit. If others are left out, a line says how many, in the place of the first of them."""
    stored: list[LogLine] = []
    for line in lines:
        if not RATE.take(host.pk, _ROW_BYTES + len(line.text.encode("utf-8", "surrogatepass"))):
            break
        stored.append(line)
    if left_out := len(lines) - len(stored):
        tally.add(Counter.REFUSED, LEFT_OUT)
        if stored:
            words = f"The server left out {left_out} lines or more, because this host sends its log too fast."
            first = lines[len(stored)]
            stored.append(LogLine(number=first.number, at=first.at, level=LogLevel.WARNING, text=words))
    return stored


def _row(host: Host, session: str, line: LogLine) -> WorkerLogLine:
    return WorkerLogLine(
        host=host,
        session=session,
        number=line.number,
        at=_moment(line.at),
        level=line.level.value,
        attempt=uuid_or_none(line.attempt),
        text=line.text.replace("\0", "�"),  # PostgreSQL keeps no NUL in a text
    )


def _moment(seconds: float) -> datetime:
    """A Unix time as a datetime; the current time if it is not a valid date."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError, ValueError):
        return timezone.now()


def _prune(host: Host) -> None:
    newest = WorkerLogLine.objects.filter(host=host).order_by("-id")
    last_kept = newest.values_list("id", flat=True)[LINES_KEPT - 1 : LINES_KEPT].first()
    if last_kept is not None:
        WorkerLogLine.objects.filter(host=host, id__lt=last_kept).delete()


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
        broker_url=credentials.admit(host=host),
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
        slug=free_host_slug(invitation.host_slug or message.hostname),
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
        former_sessions="",
        hostname=message.hostname,
        worker_version=message.worker_version[:40],
    )
    return host


def note_heard(*, host: Host, spool_bytes: int) -> None:
    """Record the time of this message and the number of unconfirmed bytes on the host's disk."""
    now = timezone.now()
    stale = now - timedelta(seconds=SEEN_EVERY_SECONDS)
    recent = host.last_seen_at is not None and stale <= host.last_seen_at <= now  # not if the clock was set back
    if not recent or host.spool_bytes != spool_bytes:
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
    targets = frozenset(host.targets.values_list("path", flat=True))
    changes = summary(before, inventory, targets)[:MAX_CHANGES] if before else None
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
    keys_of_targets = lock_keys(host, message.targets, message.inventory)
    targets = [
        _target(host, target, target_keys) for target, target_keys in zip(message.targets, keys_of_targets, strict=True)
    ]
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
