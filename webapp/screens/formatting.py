"""The formatters of `core`, under the name by which pages call them."""

from webapp.core.formatting import (
    NOTHING,
    bytes_binary,
    bytes_decimal,
    bytes_per_s,
    duration,
    iops,
    latency,
    percent,
    ratio,
    significant,
)

__all__ = [
    "NOTHING",
    "bytes_binary",
    "bytes_decimal",
    "bytes_per_s",
    "duration",
    "iops",
    "latency",
    "percent",
    "ratio",
    "significant",
]
