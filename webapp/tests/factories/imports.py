"""Imports of a small file of another tool."""

from collections.abc import Sequence

from webapp.core.models import User
from webapp.imports.reading.limits import Read
from webapp.imports.services import add_found, begin_import, end_import
from webapp.results.models import Import

PLAIN = """pattern,block_size,iodepth,iops,mib_per_s,latency_p99_us
randread,4k,1,10200,39.8,180
randread,4k,32,151000,589.8,420
randwrite,4k,1,21400,83.6,95
"""


LOG = Read("results/write_iops.1.log", "1000, 500, 1, 0\n2000, 700, 1, 0\n")  # a test of its own, with a time series


def an_import(
    *,
    by: User | None = None,
    title: str = "Old tests",
    drive: str = "PM9A3",
    host: str = "lab1",
    text: str = PLAIN,
    further: Sequence[Read] = (),
) -> Import:
    """Three results and a file that no format recognises."""
    made = begin_import(title=title, pattern="", given={"drive": drive, "host": host}, by=by)
    notes = Read("results/notes.txt", f"A note about {title}.")
    add_found(made, [Read("results/table.csv", text), notes, *further])
    return end_import(made, by=by)
