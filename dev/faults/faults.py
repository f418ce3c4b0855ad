"""All faults by name."""

from dev.faults import drive_faults, environment_faults, order_faults, partition_faults, process_faults
from dev.faults.process_faults import FaultFunction

FAULTS: dict[str, FaultFunction] = {
    **process_faults.FAULTS,
    **environment_faults.FAULTS,
    **order_faults.FAULTS,
    **drive_faults.FAULTS,
    **partition_faults.FAULTS,
}
