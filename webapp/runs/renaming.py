"""Sentences about runs that name a person, and what becomes of them when that person wants their name forgotten."""

from typing import Any

from django.db.models import Model, Value
from django.db.models.functions import Concat, Substr
from django.dispatch import receiver

from webapp.core.people import renamed
from webapp.runs.models import Transition, Trial

PAUSED = "{} paused the run."
RESUMED = "{} let the run go on."
SKIPPED = "Skipped by {}."
SKIPPED_WHY = "Skipped by {}: {}"
_WHOLE = (PAUSED, RESUMED, SKIPPED)
_BEGINNING = SKIPPED_WHY.removesuffix("{}")  # what comes after it was typed by a person
_COLUMNS: tuple[tuple[type[Model], str], ...] = ((Transition, "reason"), (Trial, "reason"), (Trial, "skip_reason"))


@receiver(renamed)
def put_new_name(*, before: str, after: str, **_: Any) -> None:
    for model, column in _COLUMNS:
        rows = model._default_manager
        for sentence in _WHOLE:
            rows.filter(**{column: sentence.format(before)}).update(**{column: sentence.format(after)})
        old, new = _BEGINNING.format(before), _BEGINNING.format(after)
        renewed = Concat(Value(new), Substr(column, len(old) + 1))
        rows.filter(**{f"{column}__startswith": old}).update(**{column: renewed})
