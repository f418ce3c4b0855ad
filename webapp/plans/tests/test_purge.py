"""The factor `purge`: where it can be asked for, and what becomes of it."""

from dataclasses import replace

from webapp.plans.estimate import estimate
from webapp.plans.expand import Expansion, expand
from webapp.plans.layouts import DriveFacts
from webapp.plans.tests.helpers import GIB, device, directory, document, part
from worker.contract.workload import TargetKind

OFFERS = {"discard": "", "ata_secure_erase": "It is frozen."}


def expanded(purge: str, **changes: object) -> Expansion:
    return expand(document(part(purge=purge), repeats=1), [device(**({"purges": OFFERS} | changes))], seed=1)


def test_it_is_done_before_the_trials_of_its_level() -> None:
    trials = expanded("none, discard").trials
    assert sorted(trial.before.purge for trial in trials) == ["", "discard"]
    assert {trial.point["purge"] for trial in trials} == {"none", "discard"}


def test_a_plan_that_does_not_name_it_has_the_points_that_it_had() -> None:
    (trial,) = expand(document(part(), repeats=1), [device()], seed=1).trials
    assert trial.before.purge == ""
    assert "purge" not in trial.point


def test_it_is_refused_where_it_cannot_be_done() -> None:
    assert "It is frozen." in " ".join(expanded("ata_secure_erase").problems)
    assert "does not support" in " ".join(expanded("nvme_format").problems)
    assert "policy does not allow" in " ".join(expanded("discard", destroy=False).problems)
    made = expand(document(part(purge="discard")), [directory()], seed=1)
    assert "not a block device" in " ".join(made.problems)
    assert expanded("shred").problems


def test_under_a_layout_every_drive_that_it_takes_must_offer_it() -> None:
    def over(drives: int, **second: object) -> Expansion:
        facts = [DriveFacts(f"a/d{n}", f"/dev/sd{n}", 10 * GIB, purges=OFFERS) for n in range(drives)]
        facts[-1] = replace(facts[-1], **second)  # type: ignore[arg-type]
        pool = device(kind=TargetKind.POOL, name="a/rack", drives=tuple(facts))
        return expand(document(part(purge="discard", layout="raid0 x2 chunk 64k, single"), repeats=1), [pool], seed=1)

    made = over(3, purges={})  # the third is never taken
    assert made.problems == ()
    assert estimate(made).layouts_built == len(made.trials) == 2
    assert "a/d1: The drive does not support it" in " ".join(over(2, purges={}).problems)
    (problem, *_) = expand(
        document(part(purge="discard", layout="vd raid0 x1 strip 64k"), repeats=1),
        [device(kind=TargetKind.POOL, drives=(DriveFacts("a/s0", "/storcli/0/252:0", GIB, TargetKind.SLOT),))], seed=1,
    ).problems  # fmt: skip
    assert "does not forward purges" in problem


def test_none_can_be_asked_of_anything() -> None:
    assert not expanded("none", destroy=False, purges={}).problems
