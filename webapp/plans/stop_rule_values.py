"""The values of the factor `stop`."""

from dataclasses import dataclass

from webapp.plans.values import Value, ValueRefused
from worker.contract.workload import Confidence, Settled, SteadyRounds, StopRule
from worker.recipes.base import parse_stop_rule, write_stop_rule

LEAST_RUNTIME_S, LEAST_SHARE = 5, 20  # s; a 20th of the maximum time


def least_runtime_s(runtime_s: int) -> int:
    """The time before which a stop rule ends no trial, if the plan names none: somebody who allows hours wants to see
    changes within hours."""
    return max(LEAST_RUNTIME_S, runtime_s // LEAST_SHARE)


@dataclass(frozen=True)
class StopRuleText:
    """A stop rule, stored as `recipes.stop_rules.write` formats it."""

    numeric: bool = False

    def parse(self, text: str) -> Value:
        try:
            return write_stop_rule(parse_stop_rule(text))
        except ValueError as error:
            raise ValueRefused(str(error)) from error

    def rule(self, value: Value) -> StopRule | None:
        """A stored value as the contract's rule; None if there is none."""
        return parse_stop_rule(str(value)) if value else None

    def format(self, value: Value) -> str:
        match self.rule(value):
            case Confidence(percent=percent):
                return f"mean known within ±{percent:g} %"
            case SteadyRounds(round_s=seconds):
                return f"steady after SNIA, rounds of {seconds} s"
            case Settled(hold_s=seconds):
                return f"settled for {seconds} s"
        return ""

    def write(self, value: Value) -> str:
        return str(value)
