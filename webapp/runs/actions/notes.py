"""Notes about runs and trials. Notes are added, deleted and restored, never changed."""

from django.db import transaction
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.runs.models import Note, Run, Trial

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
    Run.objects.select_for_update(no_key=True).get(pk=run.pk)
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
