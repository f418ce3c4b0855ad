"""What answers depend on: the tables whose changes count (`core.changes`), and the scopes of a filter.

Other rows that answers read need no trigger: the content of configurations and of versions of plans never changes, and
attempts and samples are written before the results of their trial. Later, samples change only when a partition is
thinned (`results.retention`).
"""

from collections.abc import Iterable
from uuid import UUID

from webapp.core.changes import Watch
from webapp.results.models import Import
from webapp.results.reading.filter import ResultFilter
from webapp.results.retention import SAMPLES
from webapp.runs.models import Run
from webapp.runs.states import ENDED_RUN_STATES

RESULTS = "results"  # all of them, with runs, trials and imports
COMPLETE = "complete"  # imports, and ended runs with their results
COMMON = "common"  # of every answer: names, prices, ceilings, references, baselines and their results
NAMES = "names"  # of hosts, targets, plans and people: all that tables of a run read beside the run
MOST_SOURCES = 50  # runs and imports of an answer that are watched one by one

_ALL, _COMPLETE, _EVERY, _NAMED = (f"'{scope}'" for scope in (RESULTS, COMPLETE, COMMON, NAMES))
_IMPORT_OF_RESULT = "(SELECT imported_id FROM results_origin WHERE id = r.origin_id)"
_RUN_OF_ATTEMPT = "(SELECT run_id FROM runs_attempt WHERE id = r.attempt_id)"
_ENDED = ", ".join(f"'{state}'" for state in ENDED_RUN_STATES)
_REFERENCES = "SELECT id FROM results_import WHERE slug IS NOT NULL"
_BASELINES = "SELECT {} FROM trends_baseline"


def _run(run: str, state: str = "") -> tuple[str, ...]:
    """The scopes of a run, whose id is this SQL expression. `state`: that of its state."""
    state = state or f"(SELECT state FROM runs_run WHERE id = {run})"  # noqa: S608 - our own names
    complete = f"CASE WHEN {state} IN ({_ENDED}) THEN {_COMPLETE} END"
    baseline = f"CASE WHEN {run} IN ({_BASELINES.format('run_id')}) THEN {_EVERY} END"
    return _ALL, f"'run ' || {run}", complete, baseline


def _import(imported: str) -> tuple[str, ...]:
    is_common = f"{imported} IN ({_REFERENCES} UNION {_BASELINES.format('imported_id')})"
    complete = f"CASE WHEN {imported} IS NOT NULL THEN {_COMPLETE} END"
    return _ALL, f"'import ' || {imported}", complete, f"CASE WHEN {is_common} THEN {_EVERY} END"


WATCHED = {
    "results.Result": Watch((*_run("r.run_id"), *_import(_IMPORT_OF_RESULT))),
    "results.Origin": Watch(_import("r.imported_id")),
    "results.Import": Watch(_import("r.id")),
    "runs.Run": Watch(_run("r.id", state="r.state")),
    # Other columns change while a trial runs, before it has results.
    "runs.Trial": Watch(_run("r.run_id"), columns=("ended_at", "reason_code", "invalid_reason")),
    "runs.FurtherTarget": Watch(_run("(SELECT run_id FROM runs_trial WHERE id = r.trial_id)")),
    "runs.SettingChange": Watch(_run(_RUN_OF_ATTEMPT)),
    "results.StreamRun": Watch(_run(_RUN_OF_ATTEMPT), columns=("configuration_id", "engine_version")),
    "results.KernelLine": Watch(_run(_RUN_OF_ATTEMPT)),  # of a failed trial, they may come after its end
    # Others are reported with each exchange.
    "hosts.Host": Watch((_EVERY, _NAMED), columns=("slug", "state", "archived_at")),
    "hosts.Target": Watch((_EVERY, _NAMED)),
    "hosts.HostInventory": Watch((_EVERY,)),
    "plans.Plan": Watch((_EVERY, _NAMED)),
    "compare.Price": Watch((_EVERY,)),
    "compare.EnteredCeiling": Watch((_EVERY,)),
    "trends.Baseline": Watch((_EVERY,)),
    "core.User": Watch((_EVERY, _NAMED), columns=("username",)),
}


def scopes_of(results: ResultFilter) -> tuple[str, ...]:
    """Those of the runs and imports that the filter names, else of all results. Two queries."""
    runs, imports = {*results.runs}, {*results.imports}
    if 0 < len(runs) + len(imports) <= MOST_SOURCES:
        known = [scope_of_run(pk) for pk in Run.objects.filter(number__in=runs).values_list("pk", flat=True)]
        known += [f"import {pk}" for pk in Import.objects.filter(number__in=imports).values_list("pk", flat=True)]
        if len(known) == len(runs) + len(imports):  # else one of them may still be made
            return *known, COMMON, SAMPLES
    return ANY_RESULT


def scopes_of_run(run: Run) -> tuple[str, ...]:
    return scopes_of_runs([run.pk])


def scopes_of_tables(run: Run) -> tuple[str, ...]:
    """Of values and names alone: prices, ceilings, references and baselines are not in them."""
    return scope_of_run(run.pk), NAMES


def scope_of_run(id_: UUID) -> str:
    """Of its own rows alone, without the names of hosts and targets."""
    return f"run {id_}"


def scopes_of_runs(ids: Iterable[UUID]) -> tuple[str, ...]:
    """For an answer that reads these runs and no others, whichever runs are added meanwhile."""
    return *map(scope_of_run, ids), COMMON, SAMPLES


ANY_RESULT = RESULTS, COMMON, SAMPLES
COMPLETE_RESULTS = COMPLETE, COMMON, SAMPLES
