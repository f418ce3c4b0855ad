"""Sentences about runs that name a person, and what becomes of them when that person wants their name forgotten."""

from typing import Any

from django.db.models import Model, Value
from django.db.models.functions import Replace
from django.dispatch import receiver

from webapp.core.people import renamed
from webapp.runs.models import Move, Trial

PAUSED = "{} paused the run."
RESUMED = "{} let the run go on."
SKIPPED = "Skipped by {}."
SKIPPED_WHY = "Skipped by {}: {}"
_SENTENCES = (PAUSED, RESUMED, SKIPPED, SKIPPED_WHY.removesuffix("{}"))
_COLUMNS: tuple[tuple[type[Model], str], ...] = ((Move, "reason"), (Trial, "reason"), (Trial, "skip_reason"))


@receiver(renamed)
def put_new_name(*, before: str, after: str, **_: Any) -> None:
    for model, column in _COLUMNS:
        for sentence in _SENTENCES:
            old, new = sentence.format(before), sentence.format(after)
            found = model._default_manager.filter(**{f"{column}__startswith": old})
            found.update(**{column: Replace(column, Value(old), Value(new))})
