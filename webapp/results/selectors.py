"""Reads of what was measured."""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, OuterRef, Prefetch, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform

from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.hosts.names import NO_LABEL, parted
from webapp.hosts.selectors import hosts_called
from webapp.results.filters import NOT_SET, Absence, Level, ResultFilter
from webapp.results.models import KernelLine, Result, Sample, StreamRun
from webapp.runs.at_once import FurtherTarget
from webapp.runs.models import Attempt, Run, Trial

# A result row is written in the transaction that ends its trial as done, and a trial that is done stays so.
VALID = Q(invalid=False)


# What a list shows of a result, its trial, run and target. The rest is large, or slow to read.
_OF_RESULTS = tuple(field.name for field in Result._meta.concrete_fields if field.name != "latency")
_OF_TRIALS = ("trial__index", "trial__repeat", "trial__invalid_reason")
_OF_RUNS = ("number", "label", "invalid_reason", "version__plan__slug", "version__plan__title")
_OF_TARGETS = ("slug", "model", "serial", "host__slug")


def with_places(results: QuerySet[Result]) -> QuerySet[Result]:
    """With trial, run, plan, target and host fetched along, in three queries: results share few runs and targets, so
    those are read once each. Of all of them only what a list shows.

    `further_slugs` are of the targets that its trial used beside the first one.
    `drive_state` is what the worker knew the drive to hold before its stream began; None where nobody said.
    """
    runs = Run.objects.select_related("version__plan").only(*_OF_RUNS)
    targets = Target.objects.select_related("host").only(*_OF_TARGETS)
    state = KeyTextTransform("stream.0.drive_state", "stream_run__configuration__facts")
    with_trial = results.select_related("trial").only(*_OF_RESULTS, *_OF_TRIALS).annotate(drive_state=state)
    further = FurtherTarget.objects.filter(trial=OuterRef("trial_id")).order_by("stream").values("target__slug")
    together = with_trial.annotate(further_slugs=ArraySubquery(further))
    return together.prefetch_related(Prefetch("run", runs), Prefetch("target", targets))


def filtered(asked: ResultFilter) -> QuerySet[Result]:
    """Results, latest first, with their places."""
    return with_places(Result.objects.filter(conditions(asked)))


def newest_run() -> int | None:
    """The number of the run that measured last."""
    return Result.objects.filter(VALID).values_list("run__number", flat=True).first()


def conditions(asked: ResultFilter) -> Q:
    """The filter as a condition on results."""
    condition = Q() if asked.invalid else VALID
    condition &= Q(**(_places(asked) if asked.located is None else asked.located))
    named = {"direction__in": asked.directions, "trial__repeat__in": asked.repeats}
    condition &= Q(**{lookup: values for lookup, values in named.items() if values})
    if asked.configurations:
        condition &= _any(Q(stream_run__configuration__digest__startswith=digest) for digest in asked.configurations)
    # one look at a point for all factors of which one level is asked for
    alone = {name: levels[0] for name, levels in asked.factors.items() if len(levels) == 1 and levels[0] is not NOT_SET}
    if alone:
        condition &= Q(point__contains=alone)
    for name, levels in asked.factors.items():
        if name not in alone:
            condition &= _any(_at(name, level) for level in levels)
    return condition


def located(asked: ResultFilter) -> ResultFilter:
    """The same with its places looked up, for several queries about it: at most three queries, and PostgreSQL knows
    for ids how many results they have, and finds those of one place in the order of time (`models.Result`)."""
    found = {lookup: tuple(things.values_list("pk", flat=True)) for lookup, things in _places(asked).items()}
    return replace(asked, located=found)


def _places(asked: ResultFilter) -> dict[str, QuerySet[Any]]:
    """Lookup of results -> the hosts, targets and runs that are named."""
    found: dict[str, QuerySet[Any]] = {}
    if asked.hosts:
        found["host__in"] = hosts_called(asked.hosts)
    if asked.targets or asked.models or asked.serials:
        found["target__in"] = _targets(asked)
    if asked.runs or asked.plans or asked.labels:
        labels = ["" if label == NO_LABEL else label for label in asked.labels]
        named = {"number__in": asked.runs, "version__plan__slug__in": asked.plans, "label__in": labels}
        found["run__in"] = Run.objects.filter(**{key: values for key, values in named.items() if values}).order_by()
    return found


def _targets(asked: ResultFilter) -> QuerySet[Target]:
    named = {"model__in": asked.models, "serial__in": asked.serials}
    targets = Target.objects.filter(**{lookup: values for lookup, values in named.items() if values}).order_by()
    names = map(parted, asked.targets)  # results of several at once are found by the first
    called = [Q(host__in=hosts_called([host]), slug=slugs[0]) for host, slugs in names]
    return targets.filter(_any(called)) if called else targets


def _at(name: str, level: Level) -> Q:
    """`@>` is what the GIN index on points answers; it has nothing for a factor that is not there."""
    return ~Q(point__has_key=name) if isinstance(level, Absence) else Q(point__contains={name: level})


def left_out_as_invalid(asked: ResultFilter) -> int:
    """How many results fit the filter but are left out because a person marked them."""
    if asked.invalid:
        return 0
    return Result.objects.filter(conditions(replace(asked, invalid=True)), invalid=True).count()


def _any(conditions: Iterable[Q]) -> Q:
    either = Q(pk__in=[])
    for condition in conditions:
        either |= condition
    return either


def trial_with(trial_id: str) -> Trial:
    """A trial with its run, host and target. Raises Refusal trial_unknown."""
    found = Trial.objects.select_related("run", "host", "target__host").filter(pk=trial_id).first()
    if found is None:
        raise Refusal("trial_unknown", f"There is no trial {trial_id}.")
    return found


def current_attempt(trial: Trial) -> Attempt | None:
    """The newest try at a trial."""
    return trial.attempts.order_by("-number").first()


def results_of(trial: Trial) -> QuerySet[Result]:
    """Everything a trial measured, valid or not, by direction."""
    return with_places(Result.objects.filter(trial=trial)).order_by("direction")


def configuration_of(trial: Trial) -> dict[str, str]:
    """The facts that the newest try observed, of its first stream that has any."""
    streams = StreamRun.objects.filter(attempt=current_attempt(trial), configuration__isnull=False)
    facts: dict[str, str] | None = streams.order_by("stream").values_list("configuration__facts", flat=True).first()
    return facts or {}


def series(attempt: Attempt, *, after: int = -1) -> QuerySet[Sample]:
    """Seconds of an attempt that come after second `after`, in order; histograms are left in the database."""
    samples = Sample.objects.filter(attempt=attempt, second__gt=after).defer("latency")
    return samples.order_by("second", "stream", "direction")


def sensors_of(attempt: Attempt) -> list[tuple[str, str]]:
    """Kind and name of what was read beside the I/O, in the order of the values of its samples."""
    found = StreamRun.objects.filter(attempt=attempt).exclude(sensors=[]).values_list("sensors", flat=True).first()
    return [(kind, name) for kind, name in found or []]


def kernel_lines_of(trials: Iterable[Trial] | QuerySet[Any, Any]) -> Mapping[UUID, int]:
    """How many lines about trouble with its storage the kernel's log has of each trial that has any, all its tries."""
    said = KernelLine.objects.filter(attempt__trial__in=trials, elsewhere=False).order_by()
    counted = said.values_list("attempt__trial").annotate(Count("sequence"))
    return {trial: lines for trial, lines in counted if trial is not None}


def fio_json(stream: StreamRun) -> str:
    """fio's last dump of a stream, as printed; "" where there is none."""
    return zlib.decompress(bytes(stream.fio_json)).decode() if stream.fio_json else ""
