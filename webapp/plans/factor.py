"""The type of a factor: name, label, kind of values, and cost in the order of a run."""

from dataclasses import dataclass
from enum import StrEnum

from webapp.plans.values import Value, Values


class FactorKind(StrEnum):
    WORKLOAD = "workload"
    OPTION = "option"  # further options of the workload; in a point only if the plan sets it
    PROCESS = "process"  # of the engine's processes: part of the workload; in a point only if the plan sets it
    STOPPING = "stopping"  # end of a trial: part of the workload; in a point only if the plan sets it
    DRIVE = "drive"  # done to the drive before the trial; in a point only if the plan sets it
    CHANGE = "change"  # set by Sweetspot: name of the change from a base (rule `one at a time`), stream of a result
    STREAMS = "streams"  # streams of a trial with different workloads
    TARGETS = "targets"  # number of targets of a trial; in a point only if the plan sets it
    LAYOUT = "layout"  # of drives: built before its trials, removed at the end
    SETTING = "setting"  # of the host: applied, read back, restored at the end


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
    directories_only: bool = False  # affects only directories, not block devices or file targets
    example: str = ""  # levels of a new row in the editor, if there is no default

    @property
    def numeric(self) -> bool:
        return self.values.numeric

    def format(self, value: object) -> str:
        """Format a stored value for people; an invalid value is shown unchanged."""
        if value is None or isinstance(value, str | int | bool):
            return self.values.format(value)
        return str(value)
