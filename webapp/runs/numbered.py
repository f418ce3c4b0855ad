"""The number of a trial, and trials found by it."""

from typing import TYPE_CHECKING, Any, Self

from django.db import models

from webapp.plans.trial_numbers import index_of, number_of

if TYPE_CHECKING:
    from webapp.runs.models import Trial  # noqa: F401 - what the query set is of


class Trials(models.QuerySet["Trial"]):
    def numbered(self, *numbers: int) -> Self:
        """Those with these numbers in their run."""
        return self.filter(index__in=[index_of(number) for number in numbers])


class Numbered:
    """Of a trial: how people, addresses and the API call it in its run."""

    index: Any

    @property
    def number(self) -> int:
        return number_of(self.index)
