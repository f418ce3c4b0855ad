"""The text of a stop rule, as in plans: `confidence 2%`, `settled 60s`, `snia 60s`."""

import re

import msgspec

from worker.contract.stopping import Confidence, Settled, SteadyRounds, StopRule

EXAMPLES = "`confidence 2%`, `settled 60s` or `snia 60s`"
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600}


def parse(text: str) -> StopRule:
    """Raises ValueError with a sentence that says what is valid."""
    match = re.fullmatch(
        r"([a-z]+)\s+([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(%|[a-z]+)", text.strip(), re.ASCII | re.IGNORECASE
    )
    if match is None:
        raise ValueError(f"`{text.strip()}` is not understood; write it like {EXAMPLES}")
    name, number, unit = match[1].lower(), float(match[2]), match[3].lower()
    try:
        rule: StopRule = msgspec.convert({"rule": name, **_field(name, number, unit)}, StopRule)
    except (KeyError, msgspec.ValidationError) as error:
        raise ValueError(f"`{text.strip()}` is not a valid stop rule; write it like {EXAMPLES}") from error
    return rule


def _field(name: str, number: float, unit: str) -> dict[str, float]:
    if name == "confidence":
        return {"percent": number} if unit == "%" else {}
    seconds = number * _UNITS[unit]
    return {{"snia": "round_s", "settled": "hold_s"}[name]: int(seconds) if seconds == int(seconds) else seconds}


def write(rule: StopRule) -> str:
    match rule:
        case Confidence():
            return f"confidence {rule.percent:g}%"
        case SteadyRounds():
            return f"snia {rule.round_s}s"
        case Settled():
            return f"settled {rule.hold_s}s"
