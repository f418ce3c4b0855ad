"""The lifecycle of a host: rename, maintenance, revoke, remove, restore.

    active  <->  maintenance
      |  ^           |
      |  enrolled again (a new token, the same host)
      v  |           v
       revoked  <->  archived (hidden)
          |
          deleted, if nothing refers to it

Orders, reports and results refer to a host by its id, so no change affects the results.
"""

import secrets

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.core.tokens import hash_token
from webapp.hosts import broker
from webapp.hosts.models import FormerName, Host, HostState
from webapp.hosts.names import checked_name

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
        broker.forget(host=host)
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
    try:
        with transaction.atomic():
            broker.forget(host=host)
            Host.objects.get(pk=host.pk).delete()
    except ProtectedError:
        return False
    return True


@transaction.atomic
def bring_back(*, host: Host, by: User | None) -> bool:
    """Show a removed host again. Its token stays revoked, so it must be enrolled again. False if it was not removed."""
    if Host.objects.filter(pk=host.pk).exclude(archived_at=None).update(archived_at=None) != 1:
        return False
    audit(by=by, action="host.restore", on=host)
    return True
