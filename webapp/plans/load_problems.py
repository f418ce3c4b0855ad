"""Reasons against the factor `load` in a part of a plan. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence

from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines import ENGINES
from webapp.plans.factors import FactorKind
from webapp.plans.load import LOAD
from webapp.plans.values import Value
from worker.contract.workload import Pattern
from worker.recipes import DEFAULT_ENGINE

_OPTIONS = frozenset(factor.name for factor in ENGINES[DEFAULT_ENGINE].FACTORS if factor.kind is FactorKind.OPTION)
# Factors with another level than this one change what several jobs of depth 1 do, or limit the rate themselves.
_ONLY: Mapping[str, Value] = {
    "fsync_every": 0, "sqthread_poll": False, "hipri": False, "at_once": 1, "hosts_at_once": 1, "rw_sequencer": None,
}  # fmt: skip
_ALLOWED_OPTIONS = frozenset({
    LOAD, "write_block_size", "run_length", "offset", "offset_percent", "blockalign", "file_service_type", "openfiles",
    "pre_read", "invalidate", "fadvise_hint", "force_async", "userspace_reap", "dedupe_percentage", "dedupe_mode",
    "dedupe_working_set_percentage", "buffer_compress_percentage", "buffer_compress_chunk", "buffer_pattern",
})  # fmt: skip
_PATTERNS = frozenset(pattern.value for pattern in Pattern if pattern.random and not pattern.trims)


def load_problems(
    document: PlanDocument, part: Part, levels: Mapping[str, Sequence[Value]]
) -> Iterator[tuple[str, str]]:
    """Factor and message of each reason against `load` in this part."""
    named = [name for name in levels if name == LOAD or name.endswith(f".{LOAD}")]
    if not named:
        return
    if part.streams:
        yield from ((name, "`load` cannot be used with streams; remove it.") for name in named)
        return
    if document.spread_percent or document.decide_percent:
        yield LOAD, "`load` needs all its trials: remove it, or `spread_percent` and `decide_percent`."
    if any(LOAD in re.findall(r"\w+", rule) for rule in part.rules):
        yield LOAD, "every point needs its `max` trials, so rules cannot name `load`. Remove it from the rules."
    if any(str(pattern) not in _PATTERNS for pattern in levels.get("pattern", ())):
        yield LOAD, "`load` needs a random pattern: a share runs as many jobs, which would not read in order."
    for name in ("amount", "passes", "stop", "block_split", "block_range", "cpus_policy"):
        if name in levels:
            yield name, f"`{name}` cannot be used with `load`; remove one of them."
    for name in sorted((_OPTIONS - _ALLOWED_OPTIONS) & levels.keys()):
        yield name, f"`{name}` cannot be used with `load`: it would change how I/Os arrive. Remove one of them."
    for name, only in _ONLY.items():
        if any(level != only for level in levels.get(name, ())):
            yield name, f"`{name}` cannot be used with `load`; remove one of them."
