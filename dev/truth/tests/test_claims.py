"""The claims of a page are read from its fields, whatever its sentences say."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dev.truth.claims import Claims, claims_of
from dev.truth.pages import Scenario, _measured, _planned, compared, query_of
from webapp.analysis.answer import Comparison
from webapp.plans.document import Order

NOTHING = Claims(page=False, headline=False, equal=False, warned=False)
DIFFERENT = replace(NOTHING, page=True, headline=True)
BOTH_WAYS = (0.3, 0.3, -0.3, -0.3)


def page(scenario: Scenario, shifts: Sequence[float], *, series: bool = True) -> Comparison:
    """A page with noise of 1 % on which the second level differs by these shifts, in the order of the block sizes."""
    planned = _planned(scenario, 0)
    levels = [int(str(row.point["block_size"])) for row in planned.rows]
    sizes = sorted(set(levels))
    noise = np.random.default_rng(1).normal(0, 0.01, len(planned.rows))
    rows = [
        _measured(row, float(error) + (0.0 if is_baseline else shifts[sizes.index(level)]))
        for row, level, error, is_baseline in zip(planned.rows, levels, noise, planned.is_baseline, strict=True)
    ]
    return compared(rows, query_of(scenario, series=series))


@pytest.mark.parametrize(
    ("scenario", "shifts", "series", "claims"),
    [
        (Scenario("quiet", 5), [0.3] * 4, True, DIFFERENT),
        (Scenario("quiet", 5), BOTH_WAYS, True, DIFFERENT),
        (Scenario("quiet", 5), [0.0] * 4, True, replace(NOTHING, equal=True)),
        (Scenario("quiet", 2), [0.3] * 4, True, NOTHING),
        (Scenario("quiet", 5, order=Order.LISTED), BOTH_WAYS, True, replace(NOTHING, warned=True)),
        (Scenario("quiet", 5, points=1), [0.3], False, DIFFERENT),
    ],
    ids=("difference", "in both directions", "equal", "too few repeats", "listed order", "one series"),
)
def test_it_reads_claims(scenario: Scenario, shifts: Sequence[float], series: bool, claims: Claims) -> None:
    assert claims_of(page(scenario, shifts, series=series)) == claims
