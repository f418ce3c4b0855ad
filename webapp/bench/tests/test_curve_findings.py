"""What curves of products show as a whole. The expected findings are worked out by hand."""

from collections.abc import Callable

import pytest

from webapp.bench.products import Kind, Product
from webapp.bench.side_by_side import Selection, side_by_side
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.results.models import Result
from webapp.tests.factories.results import Lab

DEPTHS = (1, 2, 4, 8, 16, 32)
LIMIT = 16_000.0
STEADY = (0.999, 1.0, 1.001, 0.9995, 1.0005, 1.0)


def limited(speed: float) -> Callable[[int], float]:
    return lambda depth: min(speed * depth, LIMIT)


def measure(lab: Lab, iops_at: Callable[[int], float], repeats: tuple[float, ...] = STEADY) -> None:
    for depth in DEPTHS:
        lab.measure(*(iops_at(depth) * factor for factor in repeats), iodepth=depth)


def sentences() -> list[str]:
    intel, samsung = Product(Kind.MODEL, INTEL), Product(Kind.MODEL, SAMSUNG)
    page = side_by_side(Selection((intel, samsung), intel))
    return [one.sentence for one in page.findings if "stop at the same" in one.sentence]


def test_two_drives_that_stop_at_one_rate_have_a_common_limit(samsung: Lab, intel: Lab) -> None:
    measure(samsung, limited(4_000))
    measure(intel, limited(2_000))
    (sentence,) = sentences()
    assert "IOPS stop at the same value, 16.0k, from queue depth 8 on." in sentence
    assert SAMSUNG in sentence
    assert INTEL in sentence


@pytest.mark.parametrize(
    ("first", "second", "repeats"),
    [
        (limited(4_000), lambda depth: 2_000.0 * depth, STEADY),  # one rises further
        (lambda depth: 1_000.0 * depth, lambda depth: 1_000.0 * depth, STEADY),  # no limit
        (limited(4_000), lambda depth: min(2_000.0 * depth, 0.9 * LIMIT), STEADY),  # different limits
        (limited(4_000), limited(2_000), (0.5, 1.9, 0.6, 1.7)),  # the repeats do not support it
    ],
)
def test_nothing_is_said_that_the_values_do_not_support(
    samsung: Lab,
    intel: Lab,
    first: Callable[[int], float],
    second: Callable[[int], float],
    repeats: tuple[float, ...],
) -> None:
    measure(samsung, first, repeats)
    measure(intel, second, repeats)
    assert sentences() == []


def test_values_that_were_measured_once_say_so(samsung: Lab, intel: Lab) -> None:
    measure(samsung, limited(4_000), (1.0,))
    measure(intel, limited(2_000), (1.0,))
    (sentence,) = sentences()
    assert sentence.endswith("(measured once).")


def test_a_value_of_0_is_on_no_curve(samsung: Lab, intel: Lab) -> None:
    measure(samsung, limited(4_000))
    measure(intel, limited(2_000))
    Result.objects.filter(point__iodepth=DEPTHS[-1]).update(iops=0.0)
    assert all("queue depth 32" not in sentence for sentence in sentences())


def test_an_outlier_of_one_product_is_not_said_because_its_other_loads_are_in_other_charts(samsung: Lab) -> None:
    for depth in (*DEPTHS, 64, 128):
        value = 1_000.0 * depth * (0.1 if depth == 8 else 1)
        samsung.measure(*(value * factor for factor in STEADY), iodepth=depth)
    page = side_by_side(Selection((Product(Kind.MODEL, SAMSUNG),), Product(Kind.MODEL, SAMSUNG)))
    assert not [one for one in page.findings if "out of line" in one.sentence]


def test_curves_of_one_job_say_so_beside_those_of_several(samsung: Lab) -> None:
    for jobs in (1, 4):
        for depth in DEPTHS:
            samsung.measure(1_000.0 * depth * jobs, iodepth=depth, numjobs=jobs)
    page = side_by_side(Selection((Product(Kind.MODEL, SAMSUNG),), Product(Kind.MODEL, SAMSUNG)))
    words = [curve.words for curve in page.all_curves if curve.factor == "iodepth"]
    assert [text.rpartition(" · ")[2] for text in words] == ["1 job", "4 jobs"]
