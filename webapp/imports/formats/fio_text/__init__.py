"""fio's human-readable text: fio 1.50 to 3.4x, of one or several runs, also pasted with prompts and other lines around.

Units: `KiB`, `MiB` powers of 1,024 and `kB`, `MB`, `k` of 1,000 from fio 2.17 on; before it `KB`, `MB` are powers of
1,024. Latencies have their unit in the line (nsec, usec, msec). Sources: fio's stat.c (show_thread_status_normal,
show_ddir_status, show_clat_percentiles), init.c and lib/num2str.c of versions 1.50, 2.0 to 2.21, 3.0 to 3.42.
"""

from webapp.imports.formats.fio_text.output import has_results, runs
from webapp.imports.formats.fio_text.results import measurements
from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import lines

TOOL = "fio"


def sniff(head: str) -> bool:
    return has_results(head)


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    return with_repeats(measurements(runs(lines(text.replace("\r\n", "\n").replace("\r", "\n")))))
