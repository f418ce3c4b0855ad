"""What changed in the configuration between two runs: facts, engine version and plan version."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from webapp.compare.fact_labels import label_of_fact
from webapp.compare.facts import VOLATILE
from webapp.hosts.models import Target
from webapp.results.models import Result
from webapp.results.reading.content import FACTS
from webapp.runs.models import Run

ENGINE_VERSION, PLAN_VERSION = "engine version", "plan version"
_DIFFERENT_EACH_TIME = VOLATILE | {"target", "device"}

RunFacts = Mapping[str, frozenset[str]]  # name -> the texts that it had in the run


@dataclass(frozen=True)
class Change:
    """`kernel.release`: 6.1.0 before, 6.12.0 after; "" if it was not observed."""

    name: str
    before: str
    after: str

    @property
    def label(self) -> str:
        return label_of_fact(self.name)


def facts_of(runs: Sequence[Run], target: Target, keys: Collection[str]) -> dict[UUID, RunFacts]:
    """The facts of each run at these points. Two queries."""
    results = Result.objects.filter(run__in=runs, target=target, invalid=False, point_key__in=keys).order_by()
    columns = ("run", "stream_run__configuration", "stream_run__engine_version")
    observed = list(results.values_list(*columns).distinct())
    facts = FACTS.get({digest: digest for _, digest, _ in observed if digest})
    found: dict[UUID, dict[str, set[str]]] = {run.pk: {PLAN_VERSION: {str(run.version.number)}} for run in runs}
    for run_id, digest, engine in observed:
        texts = {**facts.get(digest or "", {}), ENGINE_VERSION: engine}
        for name, text in texts.items():
            if text and name not in _DIFFERENT_EACH_TIME:
                found[run_id].setdefault(name, set()).add(text)
    return {run_id: {name: frozenset(texts) for name, texts in each.items()} for run_id, each in found.items()}


def changes(before: RunFacts, after: RunFacts) -> tuple[Change, ...]:
    """Facts that differ, by name."""
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return tuple(Change(name, _text(before.get(name)), _text(after.get(name))) for name in names)


def _text(texts: frozenset[str] | None) -> str:
    return ", ".join(sorted(texts or ()))
