"""All faults by name, and the requirements of some."""

from dev.faults import environment_faults, order_faults, process_faults
from dev.faults.process_faults import FaultFunction

FAULTS: dict[str, FaultFunction] = {
    **process_faults.FAULTS,
    **environment_faults.ROOT_FAULTS,
    **environment_faults.PROXY_FAULTS,
    **environment_faults.CLOCK_FAULTS,
    **order_faults.FAULTS,
}
REQUIREMENTS = {
    **dict.fromkeys(environment_faults.ROOT_FAULTS, "root"),
    **dict.fromkeys(environment_faults.CLOCK_FAULTS, "a C compiler"),
}
