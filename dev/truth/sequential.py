"""Runs that repeat until decided, simulated: false claims, coverage at the end, and the trials that are saved."""

from dataclasses import dataclass, replace

import msgspec
import numpy as np

from dev.truth.pages import Scenario, compared, document_of, query_of, selected, simulated
from webapp.analysis.answer import Comparison
from webapp.analysis.claims import Looks
from webapp.analysis.deciding import compared_rows
from webapp.results.reading.rows import ResultRow

FIRST, MARGIN_PERCENT = 3, 5


@dataclass(frozen=True)
class Ended:
    """A simulated run at its end."""

    page: Comparison
    repeats: float  # mean over the points


def until_decided(scenario: Scenario, chance: np.random.Generator) -> Ended:
    """`scenario.repeats` is the largest number of repeats."""
    document = msgspec.structs.replace(document_of(scenario), decide_percent=MARGIN_PERCENT)
    query = replace(query_of(scenario, series=True), margin=MARGIN_PERCENT / 100)
    looks = Looks(FIRST, scenario.repeats)
    rows = simulated(scenario, chance)
    measured: list[ResultRow] = [row for row in rows if row.repeat < FIRST]
    needed = {row.point_key for row in rows}
    for repeat in range(FIRST, scenario.repeats + 1):
        measured += [row for row in rows if row.repeat == repeat and row.point_key in needed]
        if repeat < scenario.repeats:
            answered = compared_rows([selected(measured, query)], document, looks)
            needed &= {row.point_key for row, is_open in answered if is_open}
        if not needed:
            break
    trials_each = len(measured) / len({row.point_key for row in rows})
    return Ended(compared(measured, query), trials_each)
