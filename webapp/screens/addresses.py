"""Builds many addresses of one kind for a page. `reverse` takes fifty times as long as inserting two numbers."""

from collections.abc import Callable

from django.urls import reverse

from webapp.results.reading.rows import ResultRow

TrialAddress = Callable[[int, int], str]
ResultAddress = Callable[[ResultRow], str]
_RUN, _TRIAL = 111_111_111, 222_222_222  # placeholders for the numbers in an address


def trial_addresses() -> TrialAddress:
    """A function from run and trial number to the address of the trial's page, as `reverse("trial", …)`."""
    before, _, rest = reverse("trial", args=(_RUN, _TRIAL)).partition(str(_RUN))
    between, _, after = rest.partition(str(_TRIAL))
    return lambda run, trial: f"{before}{run}{between}{trial}{after}"


def result_addresses() -> ResultAddress:
    """A function from a result to the address of its trial's page, or of its place on the page of its import."""
    of_trial = trial_addresses()
    before, _, after = reverse("import", args=(_RUN,)).partition(str(_RUN))

    def address(row: ResultRow) -> str:
        if row.imported:
            return f"{before}{row.imported}{after}?test={row.trial}#test-{row.trial}"
        return of_trial(row.run, row.trial)

    return address
