"""What to do next: suggestions that depend on what the product already has."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db.models import Count
from django.urls import reverse

from webapp.runs.models import Run, Trial, TrialState
from webapp.screens.hosts.views import HostRow

MAX_ADVICE = 3


@dataclass(frozen=True)
class Advice:
    """`link` is the text of the link, `why` one sentence after it."""

    link: str
    address: str
    why: str


def advice(hosts: Iterable[HostRow], latest: Sequence[Run], *, has_schedules: bool) -> list[Advice]:
    return list(islice(_all(list(hosts), latest, has_schedules), MAX_ADVICE))


def _all(hosts: list[HostRow], latest: Sequence[Run], has_schedules: bool) -> Iterator[Advice]:
    for row in hosts:
        if not row.usable:
            address = reverse("host", args=[row.host.slug])
            yield Advice(f"Allow a target on {row.host.slug}", address, "Its policy file allows no usable target.")
    if not latest:
        yield Advice("Start a plan", reverse("plans"), "The plan First look takes about three minutes.")
        return
    if found := _failed(latest):
        number, failed = found
        trials = "trial" if failed == 1 else "trials"
        link = f"Repeat the {failed} failed {trials} of run {number}"
        yield Advice(link, reverse("run", args=[number]), "Press Run again on its page.")
    yield Advice(
        "Explore the latest results", f"{reverse('explore')}?run={latest[0].number}", "Choose series and axes."
    )
    if not has_schedules:
        yield Advice("Schedule a plan", reverse("plans"), "Repeated runs show changes over time.")
    yield Advice("Compare with references or other tools", reverse("imports"), "Import files, or open the references.")
    if len(hosts) == 1:
        yield Advice("Add a second host", reverse("hosts"), "Runs of one plan can then compare two hosts.")


def _failed(latest: Sequence[Run]) -> tuple[int, int] | None:
    """The number of the newest valid run with failed trials that was not run again, and how many they are."""
    failed = Trial.objects.filter(run__in=latest, run__invalid_reason="", run__again=None, state=TrialState.FAILED)
    counted = failed.order_by("-run__number").values_list("run__number").annotate(Count("pk"))
    return counted.first()
