"""Telemetry: values of the host's sensors for every sample of a trial, and the kernel's log."""
