"""Which faults happen when: a pure function of the seed.

Kinds are dealt from a shuffled deck, so that each comes equally often; a round takes the next few. Times come
from the seed and the round's number, so that one round can be played again alone.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

FAULTS_PER_ROUND = (3, 5)
BEGIN_WITHIN_S = 7.0  # of a round's start: the time that its run takes where nothing happens
LONG_EVERY = 12  # one fault in so many is held for up to LONGEST_S
LONGEST_S, USUAL_S, SHORTEST_S = 60.0, 8.0, 1.0


@dataclass(frozen=True)
class Fault:
    """One fault: `hold_s` for what lasts, `dice` in [0, 1) for what else is to be chosen."""

    kind: str
    host: int
    at_s: float
    hold_s: float
    dice: float

    def __str__(self) -> str:
        return f"{self.kind} (host {self.host + 1}) at {self.at_s:.1f} s for {self.hold_s:.1f} s"


@dataclass(frozen=True)
class Round:
    number: int  # from 1
    faults: tuple[Fault, ...]


def deal(seed: int, *, faults: int, kinds: Sequence[str], hosts: int, longest_s: float = LONGEST_S) -> list[Round]:
    """Rounds that hold `faults` faults in all."""
    rounds: list[Round] = []
    deck: list[str] = []
    shuffler = random.Random(seed)  # noqa: S311 - repeatable, not secret
    dealt = 0
    while dealt < faults:
        count = min(shuffler.randint(*FAULTS_PER_ROUND), faults - dealt)
        while len(deck) < count:
            deck += shuffler.sample(list(kinds), len(kinds))
        taken, deck = deck[:count], deck[count:]
        rounds.append(_round(seed, len(rounds) + 1, taken, hosts, longest_s))
        dealt += count
    return rounds


def _round(seed: int, number: int, kinds: Sequence[str], hosts: int, longest_s: float) -> Round:
    dice = random.Random(f"{seed}/{number}")  # noqa: S311
    faults = [
        Fault(kind, dice.randrange(hosts), dice.uniform(0, BEGIN_WITHIN_S), _hold_s(dice, longest_s), dice.random())
        for kind in kinds
    ]
    return Round(number, tuple(sorted(faults, key=lambda fault: fault.at_s)))


def _hold_s(dice: random.Random, longest_s: float) -> float:
    highest = LONGEST_S if dice.randrange(LONG_EVERY) == 0 else USUAL_S
    return min(longest_s, dice.uniform(SHORTEST_S, highest))
