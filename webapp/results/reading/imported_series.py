"""The time series of imported tests."""

import json
import zlib

from webapp.results.models import Origin

Series = dict[str, list[dict[str, float | None]]]


def series_of(origin: Origin) -> Series:
    """By direction; lists of imports.measurement.Point. Empty without a series."""
    return json.loads(zlib.decompress(bytes(origin.series))) if origin.series else {}
