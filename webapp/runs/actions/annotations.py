"""Notes about runs and trials. Notes are added, deleted and restored, never changed."""

import re

from django.db import transaction
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.runs.models import Note, Run, Trial
from webapp.runs.states import locked_run

# Tags of runs: short words by which people find runs again.

MAX_TAGS = 20
_TAG = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


@transaction.atomic
def tag_run(*, run: Run, text: str, by: User | None) -> list[str]:
    """Add the tags in the text, and return those that the run did not have.

    Raises Refusal tag_missing, tag_invalid or too_many_tags.
    """
    added = _read(text)
    locked = locked_run(run)
    tags = sorted({*locked.tags, *added})
    if len(tags) > MAX_TAGS:
        raise Refusal("too_many_tags", f"A run has at most {MAX_TAGS} tags.")
    new = sorted({*tags} - {*locked.tags})
    _save(locked, tags, by)
    run.tags = tags
    return new


@transaction.atomic
def untag_run(*, run: Run, text: str, by: User | None) -> list[str]:
    """Remove the tags in the text, and return those that the run had. Raises Refusal tag_missing or tag_invalid."""
    removed = _read(text)
    locked = locked_run(run)
    tags = sorted({*locked.tags} - {*removed})
    old = sorted({*locked.tags} - {*tags})
    _save(locked, tags, by)
    run.tags = tags
    return old


def _save(run: Run, tags: list[str], by: User | None) -> None:
    if tags != run.tags:
        audit(by=by, action="run.tag", on=run, detail={"before": run.tags, "after": tags})
        run.tags = tags
        run.save(update_fields=["tags"])


def _read(text: str) -> list[str]:
    """Words separated by spaces or commas, in lowercase."""
    words = text.lower().replace(",", " ").split()
    if not words:
        raise Refusal("tag_missing", "Enter a tag, for example firmware-2.1.")
    for word in words:
        if not _TAG.fullmatch(word):
            rule = "use at most 40 lowercase letters, digits, dots, hyphens and underscores"
            raise Refusal("tag_invalid", f"{word[:60]} is not a valid tag: {rule}.")
    return words


MAX_NOTE_LENGTH = 4000


@transaction.atomic
def add_note(*, run: Run, trial: Trial | None = None, text: str, by: User | None) -> Note:
    """Add a note. If the same person repeats the last note, no second note is added.

    Raises Refusal note_empty or note_too_long.
    """
    words = text.strip()
    if not words:
        raise Refusal("note_empty", "The note is empty. Enter a text.")
    if len(words) > MAX_NOTE_LENGTH:
        raise Refusal("note_too_long", f"The note has {len(words):,} characters; the maximum is {MAX_NOTE_LENGTH:,}.")
    locked_run(run)
    last = Note.objects.filter(run=run, trial=trial).last()
    if last is not None and (last.text, last.by) == (words, by):
        return last
    note = Note.objects.create(run=run, trial=trial, text=words, by=by)
    audit(by=by, action="note.add", on=note.trial or note.run, detail={"text": words})
    return note


@transaction.atomic
def delete_note(*, run: Run, note_id: int, by: User | None) -> None:
    """Hide a note; `restore_note` shows it again. Its text stays in the audit log. Safe to repeat."""
    note = Note.objects.select_for_update().filter(run=run, pk=note_id).first()
    if note is not None:
        audit(by=by, action="note.delete", on=note.trial or note.run, detail={"text": note.text})
        note.deleted_at = timezone.now()
        note.save(update_fields=["deleted_at"])


@transaction.atomic
def restore_note(*, run: Run, note_id: int, by: User | None) -> None:
    """Show a deleted note again. Safe to repeat."""
    note = Note.with_deleted.select_for_update().filter(run=run, pk=note_id).exclude(deleted_at=None).first()
    if note is not None:
        note.deleted_at = None
        note.save(update_fields=["deleted_at"])
        audit(by=by, action="note.restore", on=note.trial or note.run, detail={"text": note.text})
