"""Finished runs whose numbers need a second look: unsteady results and storage errors in the kernel log."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count

from webapp.results.models import KernelLine, Result
from webapp.runs.models import Run
from worker.contract.steadiness import LABELS, NOT_STEADY, Verdict


@dataclass(frozen=True)
class Doubted:
    run: Run
    sentences: tuple[str, ...]


def doubted(runs: Iterable[Run]) -> list[Doubted]:
    """Those of the runs with a doubt, in their order. Two queries."""
    listed = list(runs)
    sentences: defaultdict[object, list[str]] = defaultdict(list)
    for run, counts in _unsteady(listed).items():
        sentences[run] += [
            _count(counts[verdict], LABELS[Verdict(verdict)]) for verdict in NOT_STEADY if counts[verdict]
        ]
    for run, trials in _storage_errors(listed).items():
        sentences[run].append(_count(trials, "with storage errors in the kernel log"))
    return [Doubted(run, tuple(sentences[run.pk])) for run in listed if run.pk in sentences]


def _unsteady(runs: list[Run]) -> dict[object, Counter[str]]:
    """Trials by run and verdict."""
    found = Result.objects.filter(run__in=runs, invalid=False, steadiness__in=NOT_STEADY).order_by()
    by_run: defaultdict[object, Counter[str]] = defaultdict(Counter)
    for run, verdict, trials in found.values_list("run", "steadiness").annotate(Count("trial", distinct=True)):
        by_run[run][verdict] = trials
    return by_run


def _storage_errors(runs: list[Run]) -> dict[object, int]:
    """The number of trials by run."""
    lines = KernelLine.objects.filter(attempt__run__in=runs, elsewhere=False).order_by()
    return dict(lines.values_list("attempt__run").annotate(Count("attempt__trial", distinct=True)))


def _count(trials: int, what: str) -> str:
    return f"{trials} trial{'' if trials == 1 else 's'} {what}"
