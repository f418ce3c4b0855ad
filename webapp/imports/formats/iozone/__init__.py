"""iozone: throughput mode (-t), automatic mode, the Excel report (-R) of both, and lists of phases with kB/s.

Units: kB and KB are 1,024 bytes (iozone.c divides by 1024); with -O the values are operations per second.
The value of throughput mode is "Children see throughput", the sum of the children's own rates, as in iozone's report.
"""

from webapp.imports.errors import ImportRefused
from webapp.imports.formats.iozone import reports, throughput
from webapp.imports.formats.iozone.reports import runs, settings
from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import lines

TOOL = "iozone"


def sniff(head: str) -> bool:
    return throughput.sniff(head) or reports.sniff(head)


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements = [measured for run in runs(lines(text)) for measured in _run(run)]
    if not measurements:
        raise ImportRefused("There is no result of iozone in this text. It may be truncated.")
    return with_repeats(measurements)


def _run(text_lines: list[str]) -> list[Measurement]:
    """The first form that has results: the reports of -R repeat those of the others."""
    stated = settings(text_lines)
    for form in (throughput.parse, reports.parse, throughput.parse_report, reports.parse_report):
        if measurements := form(text_lines, stated):
            return measurements
    return []
