"""Parses the steps before a trial. One step per line, or several separated by semicolons:

    purge discard               purge of the drive, by a method of the factor `purge`; the first step
    write 2x sequential 128k    the used part of each target, twice, in this order and block size
    write 64M random 4k         so many bytes of it
    flush                       the caches of the kernel and the drive are written
    pause 60s                   no I/O

A step that starts with `once` is done only before the first trial of its part on a target, the others before each
trial. Steps with `once` come first.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import msgspec

from webapp.plans.values import Duration, Size, Value, ValueRefused
from worker.contract.inventory import PurgeMethod
from worker.contract.workload import MAX_STEPS, MAX_TIMES, FlushStep, PauseStep, Step, WriteStep
from worker.recipes.steps import step_words

NONE = "none"
EXAMPLES = "`write 2x sequential 128k`, `write 64M random 4k`, `flush`, `pause 60s` or `purge discard`"
_WRITE = re.compile(r"write\s+(.+?)\s+(sequential|random)\s+(.+)", re.ASCII)
_BLOCK = Size(high=16 * 1024 * 1024)
_PAUSE = Duration(low=1, high=86400)


class Preparation(msgspec.Struct, frozen=True):
    """A purge, and the steps after it."""

    purge: str = ""  # contract.purge.PurgeMethod, "" for none
    steps: tuple[Step, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.purge or self.steps)


NO_PREPARATION = Preparation()


@dataclass(frozen=True)
class StepsBefore:
    """The steps before trials: `once` before the first trial of a part on a target, `each` before every trial."""

    once: Preparation = NO_PREPARATION
    each: Preparation = NO_PREPARATION

    @cached_property
    def first(self) -> Preparation:
        """The steps before the first trial."""
        return Preparation(self.once.purge or self.each.purge, (*self.once.steps, *self.each.steps))


@dataclass(frozen=True)
class _Line:
    once: bool
    step: Step | PurgeMethod

    @property
    def words(self) -> str:
        words = f"purge {self.step}" if isinstance(self.step, PurgeMethod) else step_words(self.step)
        return f"once {words}" if self.once else words


@lru_cache(maxsize=256)
def parse(text: str) -> tuple[_Line, ...]:
    """Raises ValueRefused."""
    if text.strip().lower() == NONE:
        return ()
    lines = tuple(_line(" ".join(line.lower().split())) for line in text.split(";"))
    if problem := next(_problems(lines), ""):
        raise ValueRefused(problem)
    return lines


def _problems(lines: Sequence[_Line]) -> Iterator[str]:
    purges = [number for number, line in enumerate(lines) if isinstance(line.step, PurgeMethod)]
    if len(lines) > MAX_STEPS:
        yield f"{len(lines)} steps are more than {MAX_STEPS}"
    if purges not in ([], [0]):
        yield "only the first step can be a purge"
    if [line.once for line in lines] != sorted((line.once for line in lines), reverse=True):
        yield "steps with `once` come before the others"


def _line(text: str) -> _Line:
    once = text.startswith("once ")
    words = text.removeprefix("once ").strip()
    return _Line(once, _purge(words) if words.startswith("purge ") else _step(words))


def _purge(words: str) -> PurgeMethod:
    method = words.removeprefix("purge ").strip()
    if method not in tuple(PurgeMethod):
        raise ValueRefused(f"`{words}`: there is no purge `{method}`; there are {', '.join(PurgeMethod)}")
    return PurgeMethod(method)


def _step(words: str) -> Step:
    if words == "flush":
        return FlushStep()
    if words.startswith("pause "):
        return PauseStep(seconds=int(_PAUSE.parse(words.removeprefix("pause ")) or 0))
    if match := _WRITE.fullmatch(words):
        return _write(match[1], random=match[2] == "random", block_bytes=int(_BLOCK.parse(match[3]) or 0))
    raise ValueRefused(f"`{words}` is not a step; write it like {EXAMPLES}")


def _write(amount: str, *, random: bool, block_bytes: int) -> WriteStep:
    if times := re.fullmatch(r"([0-9]{1,3})\s*[x×]", amount):
        if not 1 <= int(times[1]) <= MAX_TIMES:
            raise ValueRefused(f"`{amount}` is outside 1x to {MAX_TIMES}x")
        return WriteStep(random=random, block_bytes=block_bytes, times=int(times[1]))
    return WriteStep(random=random, block_bytes=block_bytes, amount_bytes=int(Size().parse(amount) or 0))


@lru_cache(maxsize=256)
def steps_before(value: str) -> StepsBefore:
    """A stored value of the factor `before`."""
    lines = parse(value)
    return StepsBefore(_prepared(lines, once=True), _prepared(lines, once=False))


def _prepared(lines: Sequence[_Line], *, once: bool) -> Preparation:
    steps = [line.step for line in lines if line.once is once]
    purge = next((step.value for step in steps if isinstance(step, PurgeMethod)), "")
    return Preparation(purge, tuple(step for step in steps if not isinstance(step, PurgeMethod)))


@dataclass(frozen=True)
class StepTexts:
    """Steps, stored as one text with the longest words."""

    numeric: bool = field(default=False)

    def parse(self, text: str) -> Value:
        return "; ".join(line.words for line in parse(text)) or NONE

    def format(self, value: Value) -> str:
        return str(value)

    def write(self, value: Value) -> str:
        return str(value)
