"""Addresses of many things of one kind on one page: `reverse` takes fifty times as long as putting two numbers in."""

from collections.abc import Callable

from django.urls import reverse

TrialAddress = Callable[[int, int], str]
_RUN, _TRIAL = 111_111_111, 222_222_222  # stand for the numbers in an address


def trial_addresses() -> TrialAddress:
    """Number of a run and of a trial -> the page of the trial, as `reverse("trial", …)` says it."""
    before, _, rest = reverse("trial", args=(_RUN, _TRIAL)).partition(str(_RUN))
    between, _, after = rest.partition(str(_TRIAL))
    return lambda run, trial: f"{before}{run}{between}{trial}{after}"
