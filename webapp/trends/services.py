"""Set, change and remove baseline runs. Operators may."""

from collections.abc import Mapping

from django.db import transaction

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.hosts.models import Target
from webapp.results.metrics import METRICS
from webapp.runs.models import Run
from webapp.trends.history import ENDED
from webapp.trends.models import Baseline
from webapp.trends.selectors import judged_metrics

DEFAULT_TOLERANCES = {"iops": 5.0, "latency_p99": 10.0}  # percent
MIN_TOLERANCE, MAX_TOLERANCE = 0.1, 1000.0
MAX_LOSS = 99.0  # of a metric of which higher is better


@transaction.atomic
def set_baseline(*, run: Run, target: Target, tolerances: Mapping[str, float], by: User) -> Baseline:
    """Make the run the baseline run of its plan at the target, in place of another one. `tolerances` are in percent.
    Raises Refusal."""
    checked = checked_tolerances(tolerances)
    _check_run(run, target, checked)
    values = {"run": run, "tolerances": checked, "set_by": by}
    made, _ = Baseline.objects.update_or_create(plan=run.version.plan, target=target, defaults=values)
    audit(by=by, action="baseline.set", on=made, detail={"run": run.number, "tolerances": checked})
    return made


@transaction.atomic
def remove_baseline(*, baseline: Baseline, by: User) -> None:
    audit(by=by, action="baseline.remove", on=baseline, detail={"run": baseline.run.number})
    baseline.delete()


def _check_run(run: Run, target: Target, tolerances: Mapping[str, float]) -> None:
    if run.state not in ENDED:
        raise Refusal("baseline_refused", f"Run {run.number} has not ended. Wait for its end.")
    known = {metric.key for metric in judged_metrics(run, target)}
    if not known:
        raise Refusal("baseline_refused", f"Run {run.number} has no valid results at {target}. Choose another run.")
    unknown = [METRICS[key].label for key in tolerances if key not in known]
    if unknown:
        words = f"Run {run.number} has no values of {', '.join(unknown)} at {target}."
        raise Refusal("baseline_refused", f"{words} Remove these tolerances, or choose another run.")


def checked_tolerances(tolerances: Mapping[str, float]) -> dict[str, float]:
    """In the order of the table of metrics. Raises Refusal."""
    if not tolerances:
        raise Refusal("tolerance_missing", "Enter a tolerance for at least one metric.")
    for key, percent in tolerances.items():
        metric = METRICS.get(key)
        if metric is None:
            raise Refusal("metric_unknown", f"There is no metric `{key}`. Use {', '.join(METRICS)}.")
        most = MAX_TOLERANCE if metric.lower_is_better else MAX_LOSS
        if not MIN_TOLERANCE <= percent <= most:
            words = f"The tolerance of {metric.label} is {percent:g} %. Enter {MIN_TOLERANCE:g} to {most:g} %."
            raise Refusal("tolerance_refused", words)
    return {key: float(tolerances[key]) for key in METRICS if key in tolerances}
