"""Tags of runs: short words by which people find runs again."""

import re

from django.db import transaction

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.runs.models import Run

MAX_TAGS = 20
_TAG = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


@transaction.atomic
def tag_run(*, run: Run, text: str, by: User | None) -> list[str]:
    """Add the tags in the text, and return those that the run did not have.

    Raises Refusal tag_missing, tag_invalid or too_many_tags.
    """
    added = _read(text)
    locked = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
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
    locked = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
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
