"""Telemetry: values of the host's sensors for every sample of a trial, and the kernel's log."""

from worker.telemetry.kernel_log import KernelWatch
from worker.telemetry.kernel_names import names_at, names_in
from worker.telemetry.sources import Telemetry, every_source

__all__ = ["KernelWatch", "Telemetry", "every_source", "names_at", "names_in"]
