"""The schedule of faults: which faults happen when, as a pure function of the seed.

Names are drawn from a shuffled deck, so that each fault comes equally often; a round takes the next few. Times depend
on the seed and the number of the round only, so that one round can be repeated alone.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

FAULTS_PER_ROUND = (3, 5)
START_WITHIN_S = 15.0  # of a round's start: the duration of its run without faults
LONG_EVERY = 12  # one fault in 12 lasts up to MAX_S, the others up to USUAL_S
MAX_S, USUAL_S, MIN_S = 60.0, 8.0, 1.0


@dataclass(frozen=True)
class ScheduledFault:
    """One fault: `choice` in [0, 1) selects a variant."""

    name: str
    host: int
    at_s: float
    duration_s: float
    choice: float

    def __str__(self) -> str:
        return f"{self.name} (host {self.host + 1}) at {self.at_s:.1f} s for {self.duration_s:.1f} s"


@dataclass(frozen=True)
class Round:
    number: int  # from 1
    faults: tuple[ScheduledFault, ...]


def fault_schedule(seed: int, *, faults: int, names: Sequence[str], hosts: int, max_s: float = MAX_S) -> list[Round]:
    """Rounds with `faults` faults in total."""
    rounds: list[Round] = []
    deck: list[str] = []
    shuffler = random.Random(seed)  # noqa: S311 - repeatable, not secret
    scheduled = 0
    while scheduled < faults:
        count = min(shuffler.randint(*FAULTS_PER_ROUND), faults - scheduled)
        while len(deck) < count:
            deck += shuffler.sample(list(names), len(names))
        drawn, deck = deck[:count], deck[count:]
        rounds.append(_round(seed, len(rounds) + 1, drawn, hosts, max_s))
        scheduled += count
    return rounds


def _round(seed: int, number: int, names: Sequence[str], hosts: int, max_s: float) -> Round:
    generator = random.Random(f"{seed}/{number}")  # noqa: S311
    faults = [
        ScheduledFault(
            name, generator.randrange(hosts), generator.uniform(0, START_WITHIN_S), _duration_s(generator, max_s),
            generator.random(),
        )
        for name in names
    ]  # fmt: skip
    return Round(number, tuple(sorted(faults, key=lambda fault: fault.at_s)))


def _duration_s(generator: random.Random, max_s: float) -> float:
    highest = MAX_S if generator.randrange(LONG_EVERY) == 0 else USUAL_S
    return min(max_s, generator.uniform(MIN_S, highest))
