"""A run answers its own question: the factors that its plan varies, one after another."""

import random
import re
from collections.abc import Iterable
from itertools import product

import pytest

from webapp.analysis.answer import Conclusion, FindingKind
from webapp.analysis.run_answer import RunAnswer, run_answer
from webapp.analysis.tests.orders import shuffle
from webapp.runs.models import Trial
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db
DIRECTIONS = {"randread": "read", "randwrite": "write"}


def a_run(
    number: int,
    *,
    effects: dict[tuple[str, str], float],
    names: Iterable[str] = ("none", "mq-deadline"),
    noise: float = 0.05,
    repeats: int = 5,
) -> RunAnswer:
    """Schedulers on two targets at two queue depths, for reads and writes; `effects` by pattern and scheduler."""
    first = a_target(a_host(f"h{number}"), "loop0")
    lab = Lab(first, number=number)
    second = a_target(first.host, "loop1")
    lab.run.targets.add(second)
    chance = random.Random(number)
    for target, speed in ((first, 1000.0), (second, 5000.0)):
        for pattern, depth, name in product(DIRECTIONS, (1, 32), names):
            factor = effects.get((pattern, name), 1.0)
            values = [speed * depth * factor * chance.lognormvariate(0, noise) for _ in range(repeats)]
            lab.measure(
                *values, target=target, pattern=pattern, direction=DIRECTIONS[pattern], iodepth=depth, scheduler=name
            )
    shuffle(lab.run, chance)
    return run_answer(lab.run)


def test_reads_and_writes_are_never_one_mean() -> None:
    answer = a_run(1, effects={("randread", "mq-deadline"): 1.31, ("randwrite", "mq-deadline"): 0.91}, noise=0.005)
    (factor,) = answer.factors
    assert (factor.factor, factor.label, factor.conclusion) == ("scheduler", "I/O scheduler", Conclusion.DIFFERENT)
    assert re.fullmatch(
        r"randread: I/O scheduler none is 2[34] % slower than mq-deadline .* "
        r"randwrite: I/O scheduler none is (9\.\d|1\d) % faster than mq-deadline .*",
        answer.headline,
    ), answer.headline
    assert factor.query == "run=1&x=matched&series=scheduler&panel=pattern"


def test_two_runs_of_one_plan_have_headlines_of_one_form() -> None:
    """Noise only: two numbers and their intervals differ, nothing else."""
    answers = [a_run(number, effects={}, noise=0.2) for number in (1, 2, 3)]
    assert {answer.conclusion for answer in answers} == {Conclusion.NONE}
    forms = {re.sub(r"[−+]?[\d.]+", "#", answer.headline) for answer in answers}
    assert forms == {
        "randread and randwrite: no certain difference in IOPS of I/O scheduler none against mq-deadline "
        "(mean ratios from # % to # %, n = #)#"
    }


def test_levels_without_a_difference_share_a_sentence() -> None:
    names = ("none", "mq-deadline", "kyber")
    answer = a_run(1, effects={("randread", "kyber"): 0.5}, names=names, noise=0.002)
    assert re.fullmatch(
        r"randread: mq-deadline has ×(2\.0|1\.9)\d the IOPS of kyber .* "
        r"randread: I/O scheduler none has ×(2\.0|1\.9)\d the IOPS of kyber .* "
        r"randwrite: mq-deadline and I/O scheduler none differ from kyber by less than 5 % in IOPS \(n = 5\)\.",
        answer.headline,
    ), answer.headline


def test_a_difference_that_depends_on_a_target_names_both() -> None:
    """No point is certain by itself, the mean of each target is."""
    host = a_host("a")
    first, second = a_target(host, "loop0"), a_target(host, "loop1")
    lab, chance = Lab(first), random.Random(7)
    lab.run.targets.add(second)
    for target, effect in ((first, 1.2), (second, 0.85)):
        for depth, name in product((1, 2, 4, 8, 16, 32), ("kyber", "none")):
            change = effect if name == "none" else 1.0
            values = [1000 * change * chance.lognormvariate(0, 0.02) for _ in range(4)]
            lab.measure(*values, target=target, iodepth=depth, scheduler=name)
    shuffle(lab.run, chance)
    (answered,) = run_answer(lab.run).factors
    assert re.fullmatch(
        r".*none is faster than kyber at a/loop0 \(\+\d+ %\), but slower at a/loop1 \(−\d+ %\)\..*", answered.text
    ), answered.text


def test_of_block_sizes_it_names_the_highest_iops_and_the_highest_bandwidth() -> None:
    lab = Lab(a_target(a_host("a"), "loop0"))
    for block, iops in ((4096, 9000.0), (2**20, 300.0)):
        for result in lab.measure(*(iops,) * 3, block_size=block):
            result.bytes_per_s = iops * block
            result.save(update_fields=["bytes_per_s"])
    sentences = re.split(r"(?<=\.) ", run_answer(lab.run).headline)
    assert [re.split(r",| \(", sentence)[0] for sentence in sentences] == [
        "The run reached 9.00k IOPS at 4 KiB", "The run reached 315 MB/s at 1 MiB",
    ]  # fmt: skip


def test_the_answer_follows_marked_trials() -> None:
    lab = Lab(a_target(a_host("a"), "loop0"))
    lab.measure(1000.0, 2000.0, iodepth=1)
    assert "n = 2" in run_answer(lab.run).headline
    Trial.objects.filter(run=lab.run, repeat=1).update(invalid_reason="x")
    lab.run.results.filter(repeat=1).update(invalid=True)
    assert "n = 1" in run_answer(lab.run).headline


def test_opposite_differences_within_the_margin_are_none() -> None:
    """Faster by 0.5 % at one queue depth and slower at the other, for certain."""
    lab, chance = Lab(a_target(a_host("a"), "loop0")), random.Random(1)
    for depth, name in product((1, 8), ("kyber", "none")):
        effect = {1: 1.005, 8: 0.995}[depth] if name == "none" else 1.0
        lab.measure(*(1e6 * effect * chance.lognormvariate(0, 1e-4) for _ in range(5)), iodepth=depth, scheduler=name)
    (answered,) = run_answer(lab.run).factors
    assert answered.conclusion is Conclusion.EQUAL
    assert "differ by less than 5 %" in answered.text


def test_what_a_question_claims_is_not_stated_again_along_x() -> None:
    lab = Lab(a_target(a_host("h9"), "loop0"), number=9)
    for engine, speed in (("io_uring", 100.0), ("psync", 130.0)):
        lab.measure(*(speed * factor for factor in (0.99, 1.0, 1.01, 1.0, 0.995)), ioengine=engine)
    shuffle(lab.run, random.Random(9))
    assert [finding.kind for finding in run_answer(lab.run).findings] == [FindingKind.DIFFERENCE]
