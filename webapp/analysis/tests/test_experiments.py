"""Each finding that is not certain has a plan that would confirm or refute it. The expected levels are worked out by
hand."""

import random
from collections.abc import Iterable, Mapping
from itertools import product

import pytest

from webapp.analysis.answer import FindingKind
from webapp.analysis.detectable import repeats_for, smallest
from webapp.analysis.evidence import RunFinding
from webapp.analysis.experiments import Experiment
from webapp.analysis.run_answer import run_answer
from webapp.hosts.models import Target
from webapp.plans.document import Part, PlanDocument, read
from webapp.plans.expand import expand
from webapp.plans.grids import document_problems
from webapp.plans.selectors import facts_of
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db
CAPPED = {1: 458.0, 2: 919.0, 4: 1820.0, 8: 2000.0, 16: 2000.0, 32: 2000.0}


def a_plan(*parts: Part, **common: str) -> PlanDocument:
    return PlanDocument(title="A plan", common={"size": "64m", "runtime": "3", **common}, parts=parts, repeats=1)


def a_lab(document: PlanDocument, *names: str) -> tuple[Lab, list[Target]]:
    host = a_host("h")
    targets = [a_target(host, name) for name in names or ("loop0",)]
    lab = Lab(targets[0], version=a_version(document))
    lab.run.targets.set(targets)
    return lab, targets


def found(lab: Lab, kind: FindingKind) -> RunFinding:
    return next(each for each in run_answer(lab.run).findings if each.kind is kind)


def plan_of(experiment: Experiment | None) -> PlanDocument:
    """That of the experiment, which is valid."""
    assert experiment
    plan = read(experiment.plan)
    assert not document_problems(plan)
    return plan


def measure(lab: Lab, values: Mapping[int, float], factor: str, **levels: object) -> None:
    for level, iops in values.items():
        lab.measure(iops, **{factor: level, **levels})  # type: ignore[arg-type]


def test_a_knee_gets_finer_levels_around_it() -> None:
    lab, _ = a_lab(a_plan(Part(name="a", factors={"pattern": "randread", "numjobs": "1..32 *2"})))
    measure(lab, CAPPED, "numjobs")
    experiment = found(lab, FindingKind.SATURATION).next
    plan = plan_of(experiment)
    assert (plan.parts[0].factors["numjobs"], plan.repeats) == ("4, 5, 8, 11, 16", 3)
    assert experiment
    assert experiment.targets == ("h/loop0",)


def test_levels_of_all_parts_become_those_of_the_part_that_has_them() -> None:
    """A factor that every part replaces is no longer a common one."""
    reads, writes = (Part(name=name, factors={"pattern": name}) for name in ("randread", "randwrite"))
    lab, _ = a_lab(a_plan(reads, writes, numjobs="1..32 *2"))
    measure(lab, CAPPED, "numjobs", pattern="randread")
    measure(lab, {level: 100.0 * level for level in CAPPED}, "numjobs", pattern="randwrite", direction="write")
    plan = plan_of(found(lab, FindingKind.SATURATION).next)
    assert [part.name for part in plan.parts] == ["randread"]
    assert "numjobs" not in plan.common


def test_only_the_levels_of_the_evidence_are_measured() -> None:
    lab, _ = a_lab(
        a_plan(Part(name="a", factors={"pattern": "randread", "numjobs": "1..32 *2", "block_size": "4k, 64k"}))
    )
    measure(lab, CAPPED, "numjobs", block_size=4096)
    measure(lab, {level: 100.0 * level for level in CAPPED}, "numjobs", block_size=65536)
    assert plan_of(found(lab, FindingKind.SATURATION).next).parts[0].factors["block_size"] == "4k"


def test_a_value_out_of_line_is_measured_ten_times_with_its_neighbours() -> None:
    lab, _ = a_lab(a_plan(Part(name="a", factors={"pattern": "randread", "block_size": "512..64k *2"})))
    values = (100.0, 98.0, 97.0, 31.0, 96.0, 95.0, 94.0, 93.0)
    measure(lab, {512 << place: 1000 * value for place, value in enumerate(values)}, "block_size")
    plan = plan_of(found(lab, FindingKind.OUTLIER).next)
    assert (plan.parts[0].factors["block_size"], plan.repeats) == ("2k, 4k, 8k", 10)


def test_targets_that_stop_at_one_value_are_measured_alone_and_together() -> None:
    lab, targets = a_lab(
        a_plan(Part(name="a", factors={"pattern": "randread", "iodepth": "1..64 *2"})), "loop0", "loop1"
    )
    for target, first in zip(targets, (20e3, 30e3), strict=True):
        measure(lab, {1 << place: min(first * 2**place, 200e3) for place in range(7)}, "iodepth", target=target)
    experiment = found(lab, FindingKind.CEILING).next
    plan = plan_of(experiment)
    assert plan.parts[0].factors["at_once"] == "1, 2"
    assert plan.parts[0].factors["iodepth"] in ("8", "16")
    assert experiment
    assert experiment.targets == ("h/loop0", "h/loop1")
    facts = [facts_of(target) for target in targets]
    assert len(expand(plan, facts, seed=1).trials) == 3 * (2 + 1)  # each alone, both together


def test_a_crossing_is_measured_five_times_around_its_level() -> None:
    lab, targets = a_lab(
        a_plan(Part(name="a", factors={"pattern": "randread", "iodepth": "1..64 *2"})), "loop0", "loop1"
    )
    curves = (9000, 17000, 32000, 60000, 100000, 160000, 250000), (5200, 10900, 24000, 59000, 150000, 280000, 500000)
    chance = random.Random(1)
    for target, values in zip(targets, curves, strict=True):
        for place, value in enumerate(values):
            repeats = [value * chance.lognormvariate(0, 0.01) for _ in range(3)]
            lab.measure(*repeats, iodepth=1 << place, target=target)
    experiment = found(lab, FindingKind.CROSSING).next
    plan = plan_of(experiment)
    assert (plan.parts[0].factors["iodepth"], plan.repeats) == ("4, 8, 16", 5)
    assert experiment
    assert experiment.targets == ("h/loop0", "h/loop1")


def schedulers(noise: float, repeats: int, effect: float = 1.05, names: Iterable[str] = ("none", "kyber")) -> Lab:
    lab, _ = a_lab(a_plan(Part(name="a", factors={"pattern": "randread", "scheduler": ", ".join(names)})))
    chance = random.Random(3)
    for name, _ in product(names, range(1)):
        speed = 1000.0 * (effect if name == "kyber" else 1.0)
        lab.measure(*(speed * chance.lognormvariate(0, noise) for _ in range(repeats)), scheduler=name)
    return lab


def test_what_is_not_certain_gets_the_repeats_that_it_needs() -> None:
    finding = found(schedulers(0.04, 3), FindingKind.UNCERTAIN)
    plan = plan_of(finding.next)
    assert 3 < plan.repeats <= 30
    assert plan.parts[0].factors["scheduler"] == "none, kyber"


@pytest.mark.parametrize("questions", [1, 3])
def test_they_are_the_repeats_after_which_a_plan_finds_the_difference(questions: int) -> None:
    repeats = repeats_for(0.05, 2 * questions, 0.02, most=30)
    assert repeats
    assert smallest(repeats, 2 * questions, 0.02, is_mean=True) <= 0.05
    assert smallest(repeats - 1, 2 * questions, 0.02, is_mean=True) > 0.05
    assert repeats_for(0.05, 2 * questions, 0.2, most=30) is None


def test_too_much_noise_has_no_plan() -> None:
    lab, _ = a_lab(a_plan(Part(name="a", factors={"pattern": "randread", "scheduler": "none, kyber"})))
    lab.measure(1000.0, 3000.0, 300.0, scheduler="none")
    lab.measure(1050.0, 310.0, 2900.0, scheduler="kyber")  # a ratio of almost 1
    assert found(lab, FindingKind.UNCERTAIN).next is None


def test_a_certain_difference_needs_no_plan() -> None:
    assert found(schedulers(0.002, 5, effect=2.0), FindingKind.DIFFERENCE).next is None


def test_a_plan_without_the_factor_has_no_experiment_on_it() -> None:
    """The levels of x come from the results, not from the plan."""
    lab, _ = a_lab(a_plan(Part(name="a", factors={"pattern": "randread", "iodepth": "4"})))
    measure(lab, CAPPED, "numjobs")
    assert found(lab, FindingKind.SATURATION).next is None
