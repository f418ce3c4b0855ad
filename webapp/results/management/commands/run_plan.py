"""`manage.py run_plan SLUG --host H --target T`: start a plan from the terminal and show its progress.

Exit code 0 only if every trial is done (or, without --wait, if the run was started).
"""

import argparse
import json
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.hosts.selectors import known_target
from webapp.plans.models import Plan, PlanVersion
from webapp.results.tables import aligned, point_table, run_as_data
from webapp.runs.models import Run, RunState, TrialState
from webapp.runs.selectors import RunProgress, doing, progress
from webapp.runs.services import StartRefused, cancel_run, start_run
from webapp.runs.states import ENDED_RUN_STATES

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
