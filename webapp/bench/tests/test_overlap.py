"""How many workloads products share is what Bench counts for each pair."""

import random
from datetime import UTC, datetime

import pytest

from webapp.bench.overlap import overlap
from webapp.bench.picking import offered
from webapp.bench.products import Kind, Product
from webapp.bench.side_by_side import Selection, side_by_side
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.imports.references.reading import load_references
from webapp.results.models import Result
from webapp.runs.models import Trial
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.results import FACTS, Lab

MODELS = (Product(Kind.MODEL, SAMSUNG), Product(Kind.MODEL, INTEL))
PAIRS = 20


def shared(product: Product, other: Product) -> int:
    return overlap([product]).shared[str(other)]


def on_bench(product: Product, other: Product, *held: tuple[str, str]) -> int:
    return side_by_side(Selection((product, other), held=held)).shared


def test_it_is_what_bench_counts_for_pairs_of_all_kinds(samsung: Lab, intel: Lab) -> None:
    """Two hosts with repeats, mixed workloads and controllers, an import, and the library of references."""
    third = Lab(a_drive(a_host("storage2"), "nvme0", model=INTEL, serial="I2"), number=3)
    for number, lab in enumerate((samsung, intel, third), start=1):
        facts = FACTS | {"device.controller.model": f"C{number // 2}"}
        for depth in (1, 4, 16)[:number]:
            lab.measure(100.0, 101.0, iodepth=depth, facts=facts)
            lab.measure(50.0, pattern="randrw", rwmixread=70, iodepth=depth, facts=facts)
        lab.measure(70.0, pattern="write", block_size=1 << 20, direction="write", facts=facts)
    an_import(drive=SAMSUNG, host="storage1")
    an_import(title="Others", text=PLAIN.replace("randwrite,4k", "randwrite,8k"))
    load_references()
    products = [offer.product for group in offered() for offer in group.offers]
    chance = random.Random(1)
    compared = 0
    for product in chance.sample(products, 8):
        known = overlap([product])
        counts = known.shared
        sharing = [other for other in products if counts.get(str(other))]
        others = chance.sample(sharing, min(3, len(sharing))) + chance.sample(products, 2)
        for other in set(others) - {product}:
            held = [known.steps[str(other)]] if str(other) in known.steps else []
            assert counts[str(other)] == on_bench(product, other, *held), (product, other)
            compared += bool(counts[str(other)])
    assert compared >= PAIRS - 4


def test_parts_of_a_plan_with_equal_points_are_workloads_of_their_own(samsung: Lab, intel: Lab) -> None:
    for lab in (samsung, intel):
        lab.measure(100.0, iodepth=1)
        lab.measure(200.0, iodepth=1)
        last = lab.run.trials.latest("index")
        Trial.objects.filter(pk=last.pk).update(part="b")
    assert shared(*MODELS) == on_bench(*MODELS) == 2


def test_targets_of_runs_are_places(samsung: Lab, intel: Lab) -> None:
    """Each run has both drives: each value is compared at its own drive."""
    for lab in (samsung, intel):
        for target in (samsung.target, intel.target):
            lab.measure(100.0, iodepth=1, target=target)
    runs = Product(Kind.RUN, "1"), Product(Kind.RUN, "2")
    assert shared(*runs) == on_bench(*runs) == 2


def test_what_is_shared_at_a_level_of_a_setting_is_counted_there(samsung: Lab, intel: Lab) -> None:
    """One plan sets the scheduler, and the other one does not: Bench offers the level that both have."""
    for depth in (1, 2):
        for scheduler in ("none", "mq-deadline"):
            samsung.measure(100.0, iodepth=depth, scheduler=scheduler, facts=FACTS | {"device.scheduler": scheduler})
        intel.measure(100.0, iodepth=depth, facts=FACTS | {"device.scheduler": "mq-deadline"})
    held = ("scheduler", "mq-deadline")
    assert overlap(MODELS[:1]).steps == {
        str(MODELS[1]): held,
        "run:2": held,
        "serial:I1": held,
        "target:storage1/nvme1": held,
    }
    assert shared(*MODELS) == on_bench(*MODELS, held) == 2
    assert on_bench(*MODELS) == 0
    (advice,) = side_by_side(Selection(MODELS)).advice
    assert advice.nearest
    assert advice.nearest.held == (held,)


def test_drives_of_two_hosts_share_nothing(samsung: Lab) -> None:
    other = Lab(a_drive(a_host("storage2"), "nvme0", model=INTEL), number=2)
    for lab in (samsung, other):
        lab.measure(100.0, iodepth=1)
    assert shared(*MODELS) == on_bench(*MODELS) == 0


def test_of_several_chosen_products_the_most_shared_counts(samsung: Lab, intel: Lab) -> None:
    third = Lab(a_drive(samsung.target.host, "nvme2", model="THIRD"), number=3)
    for lab, depths in ((samsung, (1, 2, 4)), (intel, (1,)), (third, (1, 2))):
        for depth in depths:
            lab.measure(100.0, iodepth=depth)
    chosen = overlap(MODELS)
    assert chosen.shared["model:THIRD"] == 2
    assert not {str(product) for product in MODELS} & chosen.shared.keys()


def test_of_too_many_results_nothing_is_said_of_products_without_a_number(
    samsung: Lab, intel: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.bench.overlap.MAX_READ", 2)
    samsung.measure(100.0, iodepth=1)
    for number in (2, 3):
        lab = intel if number == 2 else Lab(intel.target, number=3)
        lab.measure(100.0, iodepth=1)
    Result.objects.filter(target=samsung.target).update(measured_at=datetime(2020, 1, 1, tzinfo=UTC))
    known = overlap([Product(Kind.RUN, "2")])
    assert known.is_cut
    assert known.shared["run:3"] == 1
    assert f"model:{SAMSUNG}" not in known.shared


def test_it_is_computed_again_after_results_changed(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1)
    intel.measure(100.0, iodepth=1)
    assert shared(*MODELS) == 1
    intel.measure(100.0, iodepth=2)
    samsung.measure(100.0, iodepth=2)
    assert shared(*MODELS) == 2
