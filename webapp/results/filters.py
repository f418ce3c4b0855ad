"""Which results are asked for: a typed filter, and how it stands in an address.

    run=17&run=18&host=a&target=a/scratch&plan=first-look&direction=read&factor.block_size=4k,8k&invalid=1

A key that is given twice, or several levels of a factor, mean any of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from webapp.core.errors import Refusal
from webapp.plans import levels
from webapp.plans.factors import FACTORS, Value, closest
from worker.contract.reports import Direction

FACTOR_PREFIX = "factor."
KEYS = ("run", "host", "target", "plan", "direction", "invalid")


class FilterRefused(Refusal):
    """The filter asks for something that there cannot be."""

    def __init__(self, message: str) -> None:
        super().__init__("filter_refused", message)


@dataclass(frozen=True)
class ResultFilter:
    """Empty means all. Results that cannot be trusted are left out unless `invalid`."""

    runs: tuple[int, ...] = ()  # numbers
    hosts: tuple[str, ...] = ()  # slugs
    targets: tuple[str, ...] = ()  # host/target
    plans: tuple[str, ...] = ()  # slugs
    directions: tuple[str, ...] = ()
    factors: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    invalid: bool = False


def read_filter(pairs: Iterable[tuple[str, str]]) -> ResultFilter:
    """A filter from the pairs of an address. Raises FilterRefused naming the key; empty values are ignored."""
    given: dict[str, list[str]] = {}
    for key, value in pairs:
        if value:
            given.setdefault(key, []).append(value)
    factors = {key.removeprefix(FACTOR_PREFIX): texts for key, texts in given.items() if key.startswith(FACTOR_PREFIX)}
    unknown = [key for key in given if key not in KEYS and not key.startswith(FACTOR_PREFIX)]
    if unknown:
        raise FilterRefused(f"There is no filter `{unknown[0]}`. There are {', '.join(KEYS)} and factor.<name>.")
    return ResultFilter(
        runs=tuple(_run_number(text) for text in given.get("run", ())),
        hosts=tuple(given.get("host", ())),
        targets=tuple(_target(text) for text in given.get("target", ())),
        plans=tuple(given.get("plan", ())),
        directions=tuple(_direction(text) for text in given.get("direction", ())),
        factors={name: _levels(name, texts) for name, texts in factors.items()},
        invalid=given.get("invalid", ["0"])[-1] in ("1", "true", "on", "yes"),
    )


def _run_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise FilterRefused(f"run={text}: a run is named by its number.")
    return int(text)


def _target(text: str) -> str:
    if text.count("/") != 1:
        raise FilterRefused(f"target={text}: a target is named host/target.")
    return text


def _direction(text: str) -> str:
    if text not in set(Direction):
        raise FilterRefused(f"direction={text}: there are {', '.join(Direction)}.")
    return text


def _levels(name: str, texts: list[str]) -> tuple[Value, ...]:
    if name not in FACTORS:
        meant = closest(name)
        raise FilterRefused(f"There is no factor `{name}`.{f' Did you mean `{meant}`?' if meant else ''}")
    try:
        return levels.parse(FACTORS[name], ",".join(texts))
    except levels.LevelError as error:
        raise FilterRefused(f"{FACTOR_PREFIX}{name}: {error}") from error
