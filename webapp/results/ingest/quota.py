"""Limits on the data of one attempt, so that a stolen token of a host cannot fill the database.

A host has as many attempts as the server gives it orders.
"""

from collections.abc import Collection, Mapping, Sequence

from django.db.models import Model
from django.utils import timezone

from webapp.results.ingest.parse import BadItem
from webapp.results.models import DriveReading, KernelLine, Sample
from webapp.runs.dispatch.orders import longest_limit_s
from webapp.runs.models import Attempt, SettingChange
from worker.contract.items import Sample as SampleItem

# Of each table besides the samples. A worker sends at most 200 lines of the kernel's log.
MAX_ROWS: Mapping[type[Model], int] = {SettingChange: 10_000, KernelLine: 1_000, DriveReading: 1_000}
MAX_FACTS_LENGTH = 1024 * 1024  # of a configuration; sixteen targets of fifty drives each have about 800 kB
MAX_COMMAND_LENGTH = 64 * 1024
MAX_PURGED = 300  # drives
SHORT_MS = 250  # a sample is about a second long; shorter ones are counted
MAX_SAMPLES_PER_S = 4
SLACK_S = 60


def check_samples(attempt: Attempt, samples: Sequence[SampleItem]) -> None:
    """Refuse samples after the possible end of the trial, and too many samples per second. Raises BadItem."""
    last_s = max(sample.offset_ms for sample in samples) / 1000
    elapsed_s = (timezone.now() - attempt.created_at).total_seconds()
    if last_s > elapsed_s + SLACK_S and last_s > _limit_s(attempt):
        raise BadItem(f"A sample ends {last_s:.0f} s after the start, but the trial cannot have lasted so long.")
    if min(sample.length_ms for sample in samples) < SHORT_MS:
        _check_short(attempt, samples, last_s)


def _limit_s(attempt: Attempt) -> float:
    trial = attempt.trial
    if trial is None:
        return 0
    return longest_limit_s(trial) + SLACK_S


def _check_short(attempt: Attempt, samples: Sequence[SampleItem], last_s: float) -> None:
    streams = {sample.stream for sample in samples}
    stored = Sample.objects.filter(attempt=attempt.pk, stream__in=streams).values("stream", "offset_ms").distinct()
    if stored.count() + len(samples) > len(streams) * (MAX_SAMPLES_PER_S * last_s + 100):
        raise BadItem("There are too many samples for the time that the trial lasted.")


def check_rows(attempt: Attempt, model: type[Model], new: int) -> None:
    """Raises BadItem."""
    if model._default_manager.filter(attempt=attempt.pk).count() + new > MAX_ROWS[model]:
        raise BadItem(f"The attempt has reported more than {MAX_ROWS[model]} {model._meta.verbose_name_plural}.")


def check_configuration(attempt: Attempt, digest: str, text: str) -> None:
    """An attempt has one configuration: others would be stored too, with no stream that refers to them.

    Raises BadItem.
    """
    if len(text) > MAX_FACTS_LENGTH:
        raise BadItem(f"The configuration has {len(text)} characters; at most {MAX_FACTS_LENGTH}.")
    if attempt.configuration_digest not in ("", digest):
        raise BadItem("The attempt has reported another configuration before.")


def check_command(command: Collection[str]) -> None:
    """Raises BadItem."""
    if sum(map(len, command)) + len(command) > MAX_COMMAND_LENGTH:
        raise BadItem(f"The command of a stream has more than {MAX_COMMAND_LENGTH} characters.")


def check_purged(purged: Collection[object]) -> None:
    """Raises BadItem."""
    if len(purged) >= MAX_PURGED:
        raise BadItem(f"The attempt has reported more than {MAX_PURGED} purged drives.")
