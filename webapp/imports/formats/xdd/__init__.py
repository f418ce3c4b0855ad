"""xdd: its own output (6.x and 7.x), and tables of many runs by block size and number of threads.

Units: MB/s is 10^6 bytes/s (bytes / elapsed of every line of xdd's own test outputs gives the printed rate), block
and request sizes are bytes.
"""

from webapp.imports.errors import ImportRefused
from webapp.imports.formats.xdd import output, table
from webapp.imports.measurement import Measurement, with_repeats

TOOL = "xdd"


def sniff(head: str) -> bool:
    return table.sniff(head) or output.sniff(head)


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements = table.parse(text) if table.sniff(text) else output.parse(text)
    if not measurements:
        raise ImportRefused("There is no result of xdd in this text: no table with figures and no COMBINED line.")
    return with_repeats(measurements)
