"""The form of a baseline run: the run, and a tolerance for each metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.results.metrics import METRICS, Metric
from webapp.runs.models import Run
from webapp.screens.choices import Option
from webapp.trends.models import Baseline
from webapp.trends.run_values import ended_runs
from webapp.trends.selectors import judged_metrics
from webapp.trends.two_sides import DEFAULT_TOLERANCES

PREFIX = "tolerance."


@dataclass(frozen=True)
class ToleranceField:
    """`sign` is the direction of a change for the worse: − for IOPS, + for a latency."""

    metric: Metric
    name: str
    text: str

    @property
    def sign(self) -> str:
        return "+" if self.metric.lower_is_better else "−"


@dataclass(frozen=True)
class BaselineForm:
    """`problem` says why the form was refused, "" otherwise. Without `runs`, no run has ended."""

    runs: tuple[Option, ...]
    fields: tuple[ToleranceField, ...]
    problem: str = ""


def baseline_form(runs: Sequence[Run], target: Target, baseline: Baseline | None, run: str = "") -> BaselineForm:
    """The form with the values of the current baseline run, else with defaults.

    `runs`: ended runs, oldest first. `run`: number of a proposed baseline run.
    """
    tolerances = baseline.tolerances if baseline else DEFAULT_TOLERANCES
    chosen = run or (str(baseline.run.number) if baseline and baseline.run else "")
    return _form(runs, target, chosen, {key: f"{percent:g}" for key, percent in tolerances.items()})


def refused_form(plan: Plan, target: Target, given: Mapping[str, str], problem: str) -> BaselineForm:
    return _form(ended_runs(plan, target), target, given.get("run", ""), _typed(given), problem)


def read_tolerances(given: Mapping[str, str]) -> dict[str, float]:
    """Percent by metric; empty fields are left out. Raises ValueError with a sentence."""
    found = {}
    for key, text in _typed(given).items():
        try:
            found[key] = float(text.replace(",", "."))
        except ValueError as error:
            label = METRICS[key].label if key in METRICS else key
            raise ValueError(f"The tolerance of {label} is {text!r}. Enter a number in percent.") from error
    return found


def _typed(given: Mapping[str, str]) -> dict[str, str]:
    typed = {key.removeprefix(PREFIX): text.strip() for key, text in given.items() if key.startswith(PREFIX)}
    return {key: text for key, text in typed.items() if text}


def _form(
    runs: Sequence[Run], target: Target, chosen: str, texts: Mapping[str, str], problem: str = ""
) -> BaselineForm:
    options = tuple(Option(str(run.number), f"run {run.number}", str(run.number) == chosen) for run in reversed(runs))
    metrics: Sequence[Metric] = judged_metrics(runs[-1], target) if runs else ()
    fields = tuple(ToleranceField(metric, f"{PREFIX}{metric.key}", texts.get(metric.key, "")) for metric in metrics)
    return BaselineForm(options, fields, problem)
