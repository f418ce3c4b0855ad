"""What the host does beside the I/O, a value a sensor for every sample of a trial: see `Telemetry`."""

from worker.telemetry.kernel_log import KernelWatch
from worker.telemetry.kernel_names import kernel_names
from worker.telemetry.sources import Telemetry, every_source

__all__ = ["KernelWatch", "Telemetry", "every_source", "kernel_names"]
