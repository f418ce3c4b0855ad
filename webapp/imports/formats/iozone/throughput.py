"""Throughput mode: a block of lines for each phase, the report of -R, and lists such as `Rewrite  254075.39 kB/s`."""

import re

from webapp.imports.formats.iozone.reports import PHASES, Settings, measured
from webapp.imports.measurement import Measurement
from webapp.imports.values import number

_CHILDREN = re.compile(r"\s*Children see throughput for\s+(\d{1,6}) (\D{1,30}?)\s*=\s*(\S{1,40}) (?:kB|KB|ops)/sec\s*")
_REPORT = re.compile(r'\s*"\s*([A-Za-z][A-Za-z -]{2,30}?) ?"\s+(\S{1,40})\s*')
_LIST = re.compile(r"\s*([A-Za-z][A-Za-z -]{2,30}?):?\s+(\S{1,40}) k[Bb]/s(?:ec)?\s*")
_BY_CHILDREN = {phase.children: phase for phase in PHASES}
_BY_LABEL = {phase.label: phase for phase in PHASES}


def sniff(head: str) -> bool:
    return "Children see throughput" in head or any(_list_item(line) for line in head.split("\n") if len(line) < 200)


def _list_item(line: str) -> re.Match[str] | None:
    for pattern in (_REPORT, _LIST):
        if (item := pattern.fullmatch(line)) and item[1].lower() in _BY_LABEL:
            return item
    return None


def parse(text_lines: list[str], stated: Settings) -> list[Measurement]:
    measurements = []
    for line in text_lines:
        block = _CHILDREN.fullmatch(line)
        phase = _BY_CHILDREN.get(block[2]) if block else None
        if block and phase:
            value = number(block[3], "throughput")
            measurements.append(measured(phase, value, stated, {"numjobs": int(block[1])}))
    return measurements


def parse_report(text_lines: list[str], stated: Settings) -> list[Measurement]:
    items = [item for line in text_lines if (item := _list_item(line))]
    return [measured(_BY_LABEL[item[1].lower()], number(item[2], "throughput"), stated, {}) for item in items]
