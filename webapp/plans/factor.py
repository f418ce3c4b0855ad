"""What a factor is: a name, a label, its kind of values and its place in the order of a run."""

from dataclasses import dataclass
from enum import StrEnum

from webapp.plans.values import Value, Values


class FactorKind(StrEnum):
    WORKLOAD = "workload"
    PROCESS = "process"  # of the engine's processes: part of the workload, in a point only where the plan names it
    DRIVE = "drive"  # done to the drive before the trial; in a point only where the plan names it
    TARGETS = "targets"  # how many a trial uses; in a point only where the plan names it
    LAYOUT = "layout"  # of drives: built before the trials that name it, taken down at the end
    SETTING = "setting"  # of the host: applied, read back, put back at the end


@dataclass(frozen=True)
class Factor:
    """`cost` orders the factors of a randomised run: the higher, the more slowly it changes; 0 is shuffled freely."""

    name: str
    label: str
    values: Values
    unit: str = ""  # of the stored values: B, s, %, …
    kind: FactorKind = FactorKind.WORKLOAD
    cost: int = 0
    default: Value = None
    help: str = ""

    @property
    def numeric(self) -> bool:
        return self.values.numeric

    def parse(self, text: str) -> Value:
        """A typed value as it is stored. Raises ValueRefused."""
        return self.values.parse(text)

    def format(self, value: object) -> str:
        """A stored value as people read it; what is no value of this factor is shown as it is."""
        if value is None or isinstance(value, str | int | bool):
            return self.values.format(value)
        return str(value)

    def write(self, value: Value) -> str:
        """A stored value as `parse` reads it."""
        return self.values.write(value)
