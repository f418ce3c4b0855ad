"""Previews whose times come from earlier runs on the hosts, and from the speeds of earlier results on the targets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from webapp.hosts.models import Target
from webapp.plans.document import PlanDocument
from webapp.plans.estimate import estimate
from webapp.plans.expected_time import NOTHING_LEARNED, Experience
from webapp.plans.grids import PartGrid
from webapp.plans.preview import PREVIEW_SEED, Preview, preview
from webapp.results.speeds import nearest_rates, sequential_writes, speeds_on
from webapp.runs.durations import experience_of


def learned_preview(
    document: PlanDocument,
    targets: Sequence[Target],
    *,
    seed: int = PREVIEW_SEED,
    grids: Sequence[PartGrid] | None = None,
    experience: Mapping[str, Experience] | None = None,
) -> Preview:
    """Preview a plan; changes nothing. The hosts of `targets` must be fetched with them."""
    known = experience_of(targets) if experience is None else experience
    made = preview(document, targets, seed=seed, experience=known, grids=grids)
    if not made.estimate.unknown_trials and not any(made.estimate.written_before.values()):
        return made
    speeds = speeds_on(targets)
    nearest, writes = nearest_rates(made.expansion, speeds), sequential_writes(speeds)
    hosts = {str(target.host_id) for target in targets}
    more = {
        host: replace(known.get(host, NOTHING_LEARNED), nearest=nearest, sequential_writes=writes) for host in hosts
    }
    return replace(made, estimate=estimate(made.expansion, more))
