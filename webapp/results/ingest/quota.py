"""How many rows one attempt may add, so that a stolen token of a host cannot fill the database."""

from collections.abc import Sequence

import msgspec
from django.db.models import Model
from django.utils import timezone

from webapp.results.ingest.bad_item import BadItem
from webapp.results.models import Sample
from webapp.runs.dispatch.orders import total_limit_s
from webapp.runs.models import Attempt
from worker.contract.items import Sample as SampleItem
from worker.contract.workload import AnyWorkload

MAX_ROWS = 10_000  # of each table besides the samples: settings, lines of the kernel's log, readings of drives
SHORT_MS = 250  # a sample is about a second long; shorter ones are counted
MAX_SAMPLES_PER_S = 4
SLACK_S = 60


def check_samples(attempt: Attempt, samples: Sequence[SampleItem]) -> None:
    """No samples of seconds that the trial cannot have lasted, and not many of them in a second. Raises BadItem."""
    last_s = max(sample.offset_ms for sample in samples) / 1000
    elapsed_s = (timezone.now() - attempt.created_at).total_seconds()
    if last_s > elapsed_s + SLACK_S and last_s > _limit_s(attempt):
        raise BadItem(f"A sample ends {last_s:.0f} s after the beginning; the trial cannot have lasted so long.")
    if min(sample.length_ms for sample in samples) < SHORT_MS:
        _check_short(attempt, samples, last_s)


def _limit_s(attempt: Attempt) -> float:
    trial = attempt.trial
    if trial is None:
        return 0
    return total_limit_s(msgspec.convert(trial.workload, AnyWorkload), trial.stream_count) + SLACK_S


def _check_short(attempt: Attempt, samples: Sequence[SampleItem], last_s: float) -> None:
    streams = {sample.stream for sample in samples}
    kept = Sample.objects.filter(attempt=attempt.pk, stream__in=streams).values("stream", "offset_ms").distinct()
    if kept.count() + len(samples) > len(streams) * (MAX_SAMPLES_PER_S * last_s + 100):
        raise BadItem("There are too many samples for the time that the trial lasted.")


def check_rows(attempt: Attempt, model: type[Model], new: int) -> None:
    """Raises BadItem."""
    if model._default_manager.filter(attempt=attempt.pk).count() + new > MAX_ROWS:
        raise BadItem(f"The attempt has reported more than {MAX_ROWS} {model._meta.verbose_name_plural}.")
