"""Check packed histograms (`worker.contract.packing`) before they are stored unchanged."""

import re

from webapp.results.ingest.bad_item import BadItem
from worker.contract.packing import MAX_BUCKETS, MAX_NUMBER_BYTES, BadPacking, unpack

# A number longer than any that a worker packs is refused before it is computed, because that would take long.
_NUMBER_TOO_LONG = re.compile(rb"[\x80-\xff]{%d}" % MAX_NUMBER_BYTES)


def check_histogram(packed: bytes) -> None:
    """Raise BadItem unless the bytes can be unpacked to a histogram."""
    if _NUMBER_TOO_LONG.search(packed):
        raise BadItem("A histogram holds a number that is out of range.")
    try:
        histogram = unpack(packed)
    except BadPacking as error:
        raise BadItem(f"A histogram cannot be read: {error}.") from error
    if len(histogram.counts) > MAX_BUCKETS:
        raise BadItem("A histogram has too many buckets.")
