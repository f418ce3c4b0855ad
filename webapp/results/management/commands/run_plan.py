"""`manage.py run_plan SLUG --host H --target T`: start a plan from the terminal; show its progress and results.

Exit code 0 only if every trial is done (or, without --wait, if the run was started).
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from statistics import stdev
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.core.errors import Refusal
from webapp.core.statistics import mean_of
from webapp.hosts.models import Target
from webapp.hosts.selectors import known_target
from webapp.plans.factors import FACTORS
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.points import varying
from webapp.results.metrics import METRICS
from webapp.results.models import Result
from webapp.results.reading.rows import ResultRow, parts_are_alike, read_rows
from webapp.runs.models import Run, RunState, Trial, TrialState
from webapp.runs.selectors import RunProgress, doing, progress
from webapp.runs.services import StartRefused, cancel_run, start_run
from webapp.runs.states import ENDED_RUN_STATES

# Results of a run as a table for a terminal, and as plain data for scripts.

SHOWN_METRICS = ("iops", "bytes_per_s", "latency_mean", "latency_p99")


def point_table(run: Run) -> list[list[str]]:
    """A row of headings, then one row for each point, target and direction: geometric mean ± standard
    deviation, and n. Values of 0 are counted and not averaged.

    Only factors that vary in the run are shown, and the parts of the plan if several have equal points.
    """
    results = read_rows(Result.objects.filter(run=run, invalid=False).order_by("trial__index"))
    names, in_parts = varying(result.point for result in results), parts_are_alike(results)
    groups: dict[tuple[str, str, str, str], list[ResultRow]] = {}
    for result in results:
        part = result.part if in_parts else ""
        groups.setdefault((result.target_name, result.point_key, part, result.direction), []).append(result)
    labels = [*(["part"] if in_parts else []), *map(_label, names)]
    headings = ["target", *labels, "direction", "n", *(METRICS[name].label for name in SHOWN_METRICS)]
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], _order(item[1][0].point, names), *item[0][2:]))
    return [headings, *(_row(group, [group[0].part] if in_parts else [], names) for _, group in ordered)]


def _row(results: Sequence[ResultRow], part: Sequence[str], names: Sequence[str]) -> list[str]:
    first = results[0]
    levels = [*part, *(_level(name, first.point.get(name)) for name in names)]
    means = (_mean_and_spread(name, results) for name in SHOWN_METRICS)
    return [first.target_name, *levels, first.direction, str(len(results)), *means]


def _mean_and_spread(name: str, results: Sequence[ResultRow]) -> str:
    metric = METRICS[name]
    values = [value for result in results if (value := metric.of(result)) is not None]
    if not values:
        return metric.format(None)
    averaged = [value for value in values if value] or values
    zeros = f" (0 in {values.count(0)} of {len(values)})" if len(averaged) < len(values) else ""
    if len(averaged) == 1:
        return f"{metric.format(averaged[0])}{zeros}"
    return f"{metric.format(mean_of(averaged))} ± {metric.format(stdev(averaged))}{zeros}"


def _label(name: str) -> str:
    return FACTORS[name].label if name in FACTORS else name


def _level(name: str, value: Any) -> str:
    if value is None:
        return "–"
    return FACTORS[name].format(value) if name in FACTORS else str(value)


def _order(point: Mapping[str, object], names: Sequence[str]) -> list[tuple[float, str]]:
    """Numbers by size, texts in alphabetical order."""
    values = [point.get(name) for name in names]
    return [(float(value), "") if isinstance(value, int | float) else (0.0, str(value)) for value in values]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines of equal columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def run_as_data(run: Run) -> dict[str, Any]:
    """A run with its trials and their results, for scripts; units are in the names."""
    trials = run.trials.select_related("target__host").prefetch_related("further").order_by("index")
    results: dict[int, list[ResultRow]] = {}
    for row in read_rows(Result.objects.filter(run=run).order_by("direction")):
        results.setdefault(row.trial, []).append(row)
    return {
        "run": run.number,
        "plan": str(run.version),
        "state": run.state,
        "reason_code": run.reason_code,
        "reason": run.reason,
        "trials": [_trial_as_data(trial, results.get(trial.number, ())) for trial in trials],
    }


def _trial_as_data(trial: Trial, results: Sequence[ResultRow]) -> dict[str, Any]:
    return {
        "id": str(trial.pk),
        "number": trial.number,
        "repeat": trial.repeat,
        "part": trial.part,
        "target": trial.place,
        "point": trial.point,
        "state": trial.state,
        "reason_code": trial.reason_code,
        "reason": trial.reason,
        "results": [
            {
                "direction": result.direction,
                **{metric.column: metric.of(result) for metric in METRICS.values() if metric.column},
                "metrics": result.metrics,
            }
            for result in results
        ],
    }


LOOK_EVERY_S = 0.5
WAIT_LIMIT_S = 7 * 86400
BAR_CHARACTERS = 30


class Command(BaseCommand):
    help = "Start a plan on targets of a host; with --wait follow it and print what it measured."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("plan", metavar="SLUG")
        parser.add_argument("--host", required=True, metavar="HOST")
        parser.add_argument("--target", action="append", required=True, metavar="TARGET", dest="targets")
        parser.add_argument("--arm", action="append", default=[], metavar="SERIAL", help="of a drive to be overwritten")
        parser.add_argument("--seed", type=int, help="of the order of trials; left out: random")
        parser.add_argument("--note", default="")
        parser.add_argument("--wait", action="store_true", help="stay until the run has ended")
        parser.add_argument("--wait-limit", type=float, default=WAIT_LIMIT_S, metavar="SECONDS", help="then cancel it")
        parser.add_argument("--json", action="store_true", help="print the run and its results as JSON on stdout")

    def handle(self, *_: Any, **options: Any) -> None:
        self.stderr.style_func = None  # progress is not an error and not shown in red
        run = self._start(options)
        self.stderr.write(f"Run {run.number} of {run.version}, number of trials: {run.trial_count}.")
        if options["wait"]:
            self._wait(run, time.monotonic() + options["wait_limit"])
        self._print(run, as_json=options["json"], with_table=options["wait"])
        not_done = run.trials.exclude(state=TrialState.DONE).count()
        if options["wait"] and (run.state != RunState.DONE or not_done):
            words = (
                f"Run {run.number} is {run.get_state_display().lower()}, {not_done} trials are not done. {run.reason}"
            )
            raise CommandError(words.strip(), returncode=1)

    def _start(self, options: dict[str, Any]) -> Run:
        try:
            return start_run(
                version=_version(options["plan"]),
                targets=[_target(options["host"], slug) for slug in options["targets"]],
                by=None,
                armed=options["arm"],
                seed=options["seed"],
                note=options["note"],
            )
        except StartRefused as refusal:
            raise CommandError(f"Not started: {refusal} ({refusal.code})", returncode=2) from refusal

    def _wait(self, run: Run, until: float) -> None:
        shown = ""
        try:
            while run.state not in ENDED_RUN_STATES:
                if time.monotonic() > until:
                    cancel_run(run=run, by=None)
                    raise CommandError(f"Run {run.number} took too long and was cancelled.", returncode=3)
                shown = self._show(progress(run), shown)
                time.sleep(LOOK_EVERY_S)
                run.refresh_from_db()
            self._show(progress(run), shown)
        except KeyboardInterrupt:
            address = f"in the browser or with POST /api/v1/runs/{run.number}/cancel"
            raise CommandError(f"\nRun {run.number} continues. Cancel it {address}.", returncode=130) from None
        finally:
            if shown and self.stderr.isatty():
                self.stderr.write("")

    def _show(self, now: RunProgress, shown: str) -> str:
        """On a terminal, one line that is overwritten; elsewhere a new line for each ended trial."""
        if self.stderr.isatty():
            line = f"\r{_bar(now)} {_words(now)}{_doing(now)}"
            self.stderr.write(f"{line:<100.100}", ending="")
            self.stderr.flush()
            return line
        line = f"{_ended(now)} of {now.total} trials"
        if line != shown:
            self.stderr.write(_words(now))
        return line

    def _print(self, run: Run, *, as_json: bool, with_table: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(run_as_data(run)))
        elif with_table and run.results.exists():
            self.stdout.write("\n".join(aligned(point_table(run))))
            self.stdout.write("Mean ± standard deviation of n repeats.")


def _version(slug: str) -> PlanVersion:
    plan = Plan.objects.filter(slug=slug, deleted_at=None).first()
    if plan is None:
        known = ", ".join(Plan.objects.filter(deleted_at=None).values_list("slug", flat=True)) or "none"
        raise CommandError(f"There is no plan {slug}. Plans: {known}.", returncode=2)
    return plan.versions.latest("number")


def _target(host: str, slug: str) -> Target:
    try:
        return known_target(host, slug)
    except Refusal as refusal:
        known = ", ".join(map(str, Target.objects.filter(in_policy=True).select_related("host"))) or "none"
        raise CommandError(f"{refusal} Known are: {known}.", returncode=2) from refusal


def _ended(now: RunProgress) -> int:
    return now.done + now.failed + now.cancelled


def _bar(now: RunProgress) -> str:
    filled = BAR_CHARACTERS * _ended(now) // max(1, now.total)
    return "█" * filled + "░" * (BAR_CHARACTERS - filled)


def _words(now: RunProgress) -> str:
    failed = f", {now.failed} failed" if now.failed else ""
    left = f", about {now.seconds_left:.0f} s left" if now.seconds_left else ""
    return f"{_ended(now)} of {now.total} trials{failed}{left}"


def _doing(now: RunProgress) -> str:
    return f" · {doing(now.attempt)}" if now.attempt else ""
