"""pgbench: transactions per second and the mean latency, as metrics.

Units: tps; latency in ms. tps are those without the time of connecting where both are printed (pgbench.c,
printResults). A transaction is no I/O, so there are no IOPS.
"""

import re

from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import ImportRefused, lines, number

TOOL = "pgbench"
_ACTUAL = "number of transactions actually processed"
_PARAMETER = re.compile(
    r"(transaction type|scaling factor|query mode|number of clients|number of threads|duration): {1,9}(\S.{0,200})"
)
_LATENCY = re.compile(r"latency (average|stddev) ?[=:] {1,9}([\d.]{1,20}) ms")
_TPS = re.compile(r"tps = ([\d.]{1,20})(?: \((including|excluding|without)[^)]{1,60}\))?")


def sniff(head: str) -> bool:
    return _ACTUAL in head


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements: list[Measurement] = []
    other: dict[str, str] = {}
    metrics: dict[str, float] = {}
    for line in lines(text):
        if parameter := _PARAMETER.search(line):
            if parameter[1] == "transaction type":
                other, metrics = {}, {}
            other = {**other, parameter[1]: parameter[2].strip()}
        elif latency := _LATENCY.search(line):
            name = "latency_mean_ms" if latency[1] == "average" else "latency_stddev_ms"
            metrics = {**metrics, name: number(latency[2], "latency")}
        elif (tps := _TPS.search(line)) and "tps = " in line:
            metrics = {**metrics, "transactions_per_s": number(tps[1], "tps")}
            if tps[2] == "including":  # the line after it has them without the time of connecting
                continue
            measurements.append(
                Measurement(
                    tool=TOOL, name=other.get("transaction type", "")[:200], direction=None, is_io=False, factors={},
                    other=other, metrics=metrics,
                )
            )  # fmt: skip
            metrics = {}
    if not measurements:
        raise ImportRefused("pgbench printed no line with tps: its text is cut off.")
    return with_repeats(measurements)
