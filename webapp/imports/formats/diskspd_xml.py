"""DiskSpd's XML (`-Rxml`): the counts of all threads and targets of each time span.

Units: bytes and numbers of I/Os in full, seconds, ms. The rates are computed from the counts and the test time, as in
DiskSpd's text (XmlResultParser.cpp). `Random` is the alignment of random I/Os and stands only in random tests, whereas
`RandomAccess` is a hint for the cache of Windows (XmlProfileParser.cpp). The parameters of several targets are not
those of each I/O, so they are left out.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from xml.etree.ElementTree import Element, ParseError, fromstring

from webapp.imports.formats import diskspd
from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import MS, ImportRefused, lines, mix, number, size, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = diskspd.TOOL
_BEGIN = re.compile(r"<Results>\s{0,200}<System>")
_RESULTS = re.compile(r"<Results>.*?</Results>", re.DOTALL)
_OF_TEXT = frozenset(
    ("25", "50", "75", "90", "95", "99", "99.9", "99.99", "99.999", "99.9999", "99.99999", "99.999999")
)
_CUT_OFF = "The XML of DiskSpd is damaged or cut off. Import the whole file."


def sniff(head: str) -> bool:
    return _BEGIN.search(head) is not None


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    lines(text)
    if "<!" in text:  # DiskSpd writes no document type, whose entities could grow without a limit
        raise ImportRefused("This XML declares a document type or has comments: DiskSpd does not write it so.")
    results = _RESULTS.findall(text)
    if len(results) != text.count("<Results>"):
        raise ImportRefused(_CUT_OFF)
    measured = [each for result in results for each in _of_results(_parsed(result))]
    if not measured:
        raise ImportRefused("The XML of DiskSpd has no time span with I/Os.")
    return with_repeats(measured)


def _parsed(result: str) -> Element:
    try:
        return fromstring(result)  # noqa: S314 - it has no document type, and its length is limited
    except (ParseError, RecursionError, UnicodeEncodeError) as error:
        raise ImportRefused(_CUT_OFF) from error


def _of_results(results: Element) -> Iterator[Measurement]:
    version = results.findtext("System/Tool/Version", "").strip()
    measured_at = _time(results.findtext("System/RunTime", "").strip())
    profiles = results.findall("Profile/TimeSpans/TimeSpan")
    spans = results.findall("TimeSpan")
    for index, span in enumerate(spans):
        profile = profiles[index] if len(profiles) == len(spans) else None
        factors, other = _parameters(profile)
        for direction in (Direction.READ, Direction.WRITE):
            if counts := _counts(span, direction.value.capitalize()):
                yield Measurement(
                    tool=TOOL,
                    tool_version=version,
                    name=f"{direction.value.capitalize()} IO",
                    direction=direction,
                    factors=factors,
                    other=other,
                    latency=_latency(span, direction.value.capitalize()),
                    measured_at=measured_at,
                    **counts,
                )


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y/%m/%d %H:%M:%S UTC").replace(tzinfo=UTC)
    except ValueError:
        return None


def _counts(span: Element, name: str) -> diskspd.Counts | None:
    targets = span.findall("Thread/Target")
    ios = sum(whole(target.findtext(f"{name}Count", "0"), "number of I/Os") for target in targets)
    moved = sum(whole(target.findtext(f"{name}Bytes", "0"), "number of bytes") for target in targets)
    return diskspd.counts(ios, moved, span.findtext("TestTimeSeconds", ""))


def _latency(span: Element, name: str) -> Latency:
    mean = span.findtext(f"Latency/Average{name}Milliseconds")
    stddev = span.findtext(f"Latency/{name}LatencyStdev")
    values = {
        bucket.findtext("Percentile", "").strip(): number(value, "percentile") * MS
        for bucket in span.findall("Latency/Bucket")
        if (value := bucket.findtext(f"{name}Milliseconds"))
    }
    return Latency(
        min_ns=values.get("0"),
        mean_ns=number(mean, "latency") * MS if mean else None,
        max_ns=values.get("100"),
        stddev_ns=number(stddev, "latency") * MS if stddev else None,
        percentiles={float(percent): value for percent, value in values.items() if percent in _OF_TEXT},
        step_ns=MS / 1000,
    )


def _parameters(profile: Element | None) -> tuple[dict[str, Value], dict[str, str]]:
    targets = profile.findall("Targets/Target") if profile is not None else []
    if profile is None or len(targets) != 1:
        return {}, {}
    target = targets[0]
    stated: dict[str, Value] = {}
    if block := target.findtext("BlockSize"):
        stated["block_size"] = size(block, "block size")
    if whole(profile.findtext("ThreadCount", "0")) == 0:  # with -F, the threads and their depth are not of one target
        if depth := target.findtext("RequestCount"):
            stated["iodepth"] = whole(depth)
        if threads := target.findtext("ThreadsPerFile"):
            stated["numjobs"] = whole(threads)
    if cache := target.findtext("DisableOSCache"):
        stated["direct"] = cache.strip() == "true"
    random = number(target.findtext("RandomRatio", "100")) if target.find("Random") is not None else 0.0
    factors, other = sorted_factors(stated)
    order, mixed = mix(100 - number(target.findtext("WriteRatio", "0")), random)
    return factors | order, other | mixed
