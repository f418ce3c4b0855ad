"""The factor `purge`: where it can be asked for, and what becomes of it."""

from webapp.plans.expand import Expansion, expand
from webapp.plans.tests.helpers import device, directory, document, part

OFFERS = {"discard": "", "ata_secure_erase": "It is frozen."}


def expanded(purge: str, **changes: object) -> Expansion:
    return expand(document(part(purge=purge), repeats=1), [device(**({"purges": OFFERS} | changes))], seed=1)


def test_it_is_done_before_the_trials_of_its_level() -> None:
    trials = expanded("none, discard").trials
    assert sorted(trial.purge for trial in trials) == ["", "discard"]
    assert {trial.point["purge"] for trial in trials} == {"none", "discard"}


def test_a_plan_that_does_not_name_it_has_the_points_that_it_had() -> None:
    (trial,) = expand(document(part(), repeats=1), [device()], seed=1).trials
    assert trial.purge == ""
    assert "purge" not in trial.point


def test_it_is_refused_where_it_cannot_be_done() -> None:
    assert "It is frozen." in " ".join(expanded("ata_secure_erase").problems)
    assert "does not offer" in " ".join(expanded("nvme_format").problems)
    assert "policy does not allow" in " ".join(expanded("discard", destroy=False).problems)
    made = expand(document(part(purge="discard")), [directory()], seed=1)
    assert "no block device" in " ".join(made.problems)
    assert expanded("shred").problems


def test_none_can_be_asked_of_anything() -> None:
    assert not expanded("none", destroy=False, purges={}).problems
