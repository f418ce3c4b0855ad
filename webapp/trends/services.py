"""Set, change and remove baselines. Operators may."""

from collections.abc import Collection, Mapping

from django.db import transaction

from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.verdicts import NO_VALUES
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.results.models import Import, ImportState
from webapp.runs.models import Run
from webapp.runs.states import ENDED_RUN_STATES
from webapp.trends.models import Baseline
from webapp.trends.selectors import known_metrics
from webapp.trends.two_sides import UNSTATED, Side, check_factors, checked_tolerances, import_side, judge_read


@transaction.atomic
def set_baseline(*, run: Run, target: Target, tolerances: Mapping[str, float], by: User) -> Baseline:
    """Make the run the baseline of its plan at the target, in place of another one. `tolerances` are in percent.
    Raises Refusal."""
    checked = checked_tolerances(tolerances)
    _check_run(run, target, checked)
    made = _set(run.version.plan, target, {"run": run, "tolerances": checked, "set_by": by})
    audit(by=by, action="baseline.set", on=made, detail={**_judge_of(made), "tolerances": checked})
    return made


@transaction.atomic
def set_import_baseline(
    *,
    plan: Plan,
    target: Target,
    imported: Import,
    levels: Mapping[str, str],
    ignored: Collection[str],
    single_values: bool,
    tolerances: Mapping[str, float],
    by: User,
) -> Baseline:
    """Make an import the baseline of the plan at the target, in place of another one. `levels`, `ignored` and
    `single_values` are those of an acceptance test (`trends.two_sides`). Raises Refusal."""
    checked = checked_tolerances(tolerances)
    check_factors(ignored)
    _check_import(imported, levels, ignored, checked)
    values = {"imported": imported, "levels": dict(levels), "ignored": list(ignored), "single_values": single_values}
    made = _set(plan, target, {**values, "tolerances": checked, "set_by": by})
    chosen = {name: values[name] for name in ("levels", "ignored", "single_values")}
    audit(by=by, action="baseline.set", on=made, detail={**_judge_of(made), "tolerances": checked, **chosen})
    return made


def _set(plan: Plan, target: Target, values: Mapping[str, object]) -> Baseline:
    empty: dict[str, object] = {"run": None, "imported": None, "levels": {}, "ignored": [], "single_values": False}
    made, _ = Baseline.objects.update_or_create(plan=plan, target=target, defaults={**empty, **values})
    return made


@transaction.atomic
def remove_baseline(*, baseline: Baseline, by: User) -> None:
    """Safe to repeat."""
    deleted, _ = Baseline.objects.filter(pk=baseline.pk).delete()
    if deleted:
        audit(by=by, action="baseline.remove", on=baseline, detail=_judge_of(baseline))


def _judge_of(baseline: Baseline) -> dict[str, object]:
    if baseline.imported is not None:
        return {"import": baseline.imported.number}
    return {"run": baseline.run.number} if baseline.run else {}


def _check_run(run: Run, target: Target, tolerances: Mapping[str, float]) -> None:
    if run.state not in ENDED_RUN_STATES:
        raise Refusal("baseline_refused", f"Run {run.number} has not ended. Wait for its end.")
    known = known_metrics(run, target, tolerances)
    if not known:
        raise Refusal("baseline_refused", f"Run {run.number} has no valid results at {target}. Choose another run.")
    unknown = [metric_named(key).label for key in tolerances if key not in known]
    if unknown:
        words = f"Run {run.number} has no values of {', '.join(unknown)} at {target}."
        raise Refusal("baseline_refused", f"{words} Remove these tolerances, or choose another run.")


def _check_import(
    imported: Import, levels: Mapping[str, str], ignored: Collection[str], tolerances: Mapping[str, float]
) -> None:
    """It has ended, the levels exist, no row mixes different results, and every metric has values."""
    name = f"Import {imported.number}"
    if imported.state == ImportState.READING:
        raise Refusal("baseline_refused", f"{name} has not ended. Wait for its end.")
    side = import_side(imported.number, levels)
    if not side.rows:
        raise Refusal("baseline_refused", f"{name} has no valid results. Choose another baseline.")
    always = set(ignored) - {UNSTATED}  # which factors are unstated depends on the run
    judged = judge_read(side, Side({}, (), "a run"), tolerances, ignored=always, single_values=True)
    unknown = [row.metric.label for row in judged.rows if row.why == NO_VALUES]
    if unknown:
        words = f"{name} has no values of {', '.join(unknown)}."
        raise Refusal("baseline_refused", f"{words} Remove these tolerances, or choose another baseline.")
