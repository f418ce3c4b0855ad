"""The lines of fio's text as runs, and the entries of jobs in them.

A run prints a line for each section (`job: (g=0): rw=…`), its version, an entry for each job or group of jobs
(`job: (groupid=0, jobs=1): err= 0: …`), and sums of the groups (`Run status group 0`). Any of them can be missing in a
pasted text, and each line may have text in front, such as the time of a log or a quotation mark. With
--status-interval, fio prints all entries again, with the same process ids: the last ones count.
"""

import io
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from webapp.imports.values import MS, US, Printed, number
from worker.contract.items import Direction

KINDS = ("slat", "clat", "lat")
_UNITS = {"n": 1.0, "u": US, "m": MS}
_PREFIXES = " kmgtpe"
_NUMBER = r"\d{1,20}(?:\.\d{1,6})?"
_RATE, _OLD_RATE = rf"{_NUMBER} ?[kKMGTPE]?i?(?:B|bit)", rf"{_NUMBER} ?[KMGTPE]?(?:B|bit)?"
_AMOUNT = re.compile(rf"({_NUMBER}) ?([kKMGTPE]?)(i?)(B|b|bit)?")
_SECTION = re.compile(
    r": \(g=(\d{1,9})\): rw=(\w{1,20}), (bs[^:]{1,200}?), (?:bs_is_seq_rand, )?"
    r"ioengine=([\w.:/-]{1,60}), iodepth=(\d{1,9})"
)
_SIZES = re.compile(rf"({_NUMBER}[kKMGTP]?i?B?)-({_NUMBER}[kKMGTP]?i?B?)")
_VERSION = re.compile(r"(?:^|[\s>|])fio[- ](\d{1,3}\.\d[\w.-]{0,40})\s*$")
_ENTRY = re.compile(
    r"\(groupid=(\d{1,9}), jobs=(\d{1,9})\): err= ?(-?\d{1,9})(?: \(([^()]{0,200}(?:\([^()]{0,100}\))?[^()]{0,100})\))?"
    r"(?:: pid=(-?\d{1,10}))?"
)
_FLOW = re.compile(
    rf"(read|write|trim|mixed) {{0,3}}: {{1,9}}IOPS= {{0,3}}({_NUMBER}[kKMG]?), {{1,9}}BW= {{0,3}}({_RATE})/s"
    rf"(?: {{0,9}}\(({_RATE})/s\))?(?: {{0,9}}\([^()/]{{1,30}}/(\d{{1,15}})msec\))?"
)
_OLD_FLOW = re.compile(
    rf"(read|write|trim|mixed) {{0,3}}: {{1,9}}io= {{0,9}}({_OLD_RATE}), bw= {{0,9}}({_OLD_RATE})/s"
    rf", iops= {{0,9}}({_NUMBER}[KMG]?) {{0,3}}, runt= {{0,10}}(\d{{1,15}}) ?msec"
)
_LATENCY = re.compile(
    rf"\b([sc]?lat) ?\(([num])sec\) {{0,3}}: min= {{0,9}}({_NUMBER})([kKMG]?) ?, max= {{0,9}}({_NUMBER})([kKMG]?) ?, "
    rf"avg= {{0,9}}({_NUMBER}), stdev= {{0,9}}({_NUMBER})"
)
_PERCENTILES = re.compile(r"(?:\b([a-z]{1,9})|\)) percentiles \(([num])sec\) ?:")
_PERCENTILE = re.compile(r"(\d{1,3}\.\d{1,10})th=\[ {0,19}(\d{1,19})\]")
_ISSUED = re.compile(
    r"issued {1,5}(?:rwts?|r/w/d)? {0,4}: total=(?:r=)?(\d{1,19})[,/](?:w=)?(\d{1,19})[,/](?:d=)?(\d{1,19})"
)
_CPU = re.compile(rf"cpu {{1,12}}: usr=({_NUMBER})%, sys=({_NUMBER})%")
_ERRORS = re.compile(r"errors {1,6}: total=(\d{1,19}), first_error=(\d{1,9})")
_GROUP = re.compile(r"Run status group (\d{1,9}) \(all jobs\)")
_SUM = re.compile(
    rf"\b(READ|WRITE|TRIM|MIXED): (?:bw= ?({_RATE})/s .{{1,200}}?run=(\d{{1,15}})-(\d{{1,15}})msec"
    rf"|io= ?[^,]{{1,30}}, aggrb= ?({_OLD_RATE})/s, .{{1,120}}?maxt= {{0,9}}(\d{{1,15}}) ?msec)"
)
_COMMAND = re.compile(r"(?:^|[\s#$%>/`])fio(?:\.exe)? {1,9}(-{1,2}[a-z].{0,4000})")
_OPTION = re.compile(r"-{1,2}([a-z][\w-]{0,40})(?:=(.{0,500}))?", re.DOTALL)
_AFTER_COMMAND = re.compile(r"[0-9]?[>|;&#].*", re.DOTALL)
_CLIENT = re.compile(r"<([\w.:-]{1,100})> ")
_MAX_NAME = 200


class Flow(msgspec.Struct):
    """One direction of an entry, as printed. Latencies are in ns."""

    direction: Direction | None  # None: reads and writes together
    iops: Printed | None = None
    bytes_per_s: Printed | None = None
    runtime_ms: int | None = None
    latencies: dict[str, tuple[Printed, Printed, Printed, Printed]] = {}  # kind -> min, max, mean, deviation
    percentiles: dict[str, dict[float, Printed]] = {}  # kind -> percent -> latency


class Section(msgspec.Struct, frozen=True):
    """A line about a section of the job, with its options as fio's job files write them."""

    name: str
    group: int
    options: Mapping[str, str]


class Entry(msgspec.Struct):
    """The results of a job, or of the jobs of a group. `jobs` is 0 if the line with its name is missing."""

    name: str = ""
    line: int = 0  # of the text
    client: str = ""
    group: int = 0
    jobs: int = 0
    error: int = 0
    error_text: str = ""
    pid: int | None = None
    flows: list[Flow] = []
    issued: tuple[int, int, int] | None = None  # reads, writes, trims
    cpu_percent: tuple[float, float] | None = None  # user, system

    @property
    def process(self) -> object:
        return self.client, self.group, self.name, self.pid


class Sum(msgspec.Struct, frozen=True):
    """The bandwidth of all jobs of a group in one direction."""

    group: int
    direction: Direction | None
    bytes_per_s: Printed
    runtime_ms: int


class Run(msgspec.Struct):
    version: str = ""
    command: Mapping[str, str] = {}  # options of the command line above it
    sections: list[Section] = []
    entries: list[Entry] = []
    before: list[Entry] = []  # as printed one interval before
    sums: list[Sum] = []


def has_results(head: str) -> bool:
    """Whether a text has a line with results of a job or of a group."""
    return any(
        _FLOW.search(line) or _OLD_FLOW.search(line) or _SUM.search(line) for line in io.StringIO(head) if "=" in line
    )


def amount(text: str, version: str = "", *, old: bool = False) -> Printed:
    """`97.7MiB`, `102MB`, `25.0k` in the unit without a prefix, with the step of the last printed digit. Raises
    ImportRefused.

    `old` is fio before 2.17, whose prefixes are powers of 1,024 and have no T: 1P is 1 TiB. Its digits behind the
    point are not tenths but a rest without leading zeros (lib/num2str.c), so the step is a whole unit. So it is for
    zeros of versions before 3.26, which print 20.96 as 20.0."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        return number(text, "amount")
    digits, prefix, binary, unit = match[1], match[2].lower(), match[3], match[4]
    power = _PREFIXES.index(prefix or " ")
    if old and prefix in ("p", "e"):
        power -= 1
    value = number(digits, "amount")
    _, point, decimals = digits.partition(".")
    if point and (old or (not decimals.strip("0") and not _has_exact_zeros(version))):
        value = Printed(value, 1.0)
    factor = 1024 if binary or (old and unit) else 1000
    return value * float(factor**power) / (8 if unit == "bit" else 1)


def _has_exact_zeros(version: str) -> bool:
    match = re.match(r"(\d{1,3})\.(\d{1,3})", version)
    return match is not None and (int(match[1]), int(match[2])) >= (3, 26)


def runs(text_lines: Iterable[str]) -> list[Run]:
    """The runs in the lines of a text, in order. Raises ImportRefused for impossible numbers."""
    reader = _Reader()
    for number_of_line, line in _joined(text_lines):
        reader.line = number_of_line
        if "=" in line or "fio" in line or "percentiles" in line or "Run status" in line:
            reader.read(line.replace("\xa0", " "))
    for run in reader.runs:
        if len(run.before) > len(run.entries):  # the text is cut off in its last interval
            run.entries = run.before
    return [run for run in reader.runs if run.entries or run.sums]


def _joined(text_lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines with their numbers. Commands that go on in the next line are one line."""
    command = ""
    for place, line in enumerate(text_lines, start=1):
        if line.endswith("\\") and len(command) < 4000 and (command or "fio" in line):
            command += line[:-1] + " "
            continue
        yield place, command + line
        command = ""


class _Reader:
    def __init__(self) -> None:
        self.runs = [Run()]
        self.line = 0
        self._entry: Entry | None = None  # whose lines are being read
        self._flow: Flow | None = None
        self._group = 0  # whose sums are being read
        self._percentiles: dict[float, Printed] | None = None
        self._unit = 1.0  # of the percentiles, in ns
        self._summed = False  # the sums of the run's groups were printed

    def read(self, line: str) -> None:
        if "th=[" in line:
            self._read_percentiles(line)
        elif "(groupid=" in line and (entry := _ENTRY.search(line)):
            self._begin_entry(line, entry)
        elif "(g=" in line and (section := _SECTION.search(line)):
            self._begin_section(line, section)
        elif (flow := _FLOW.search(line)) or (flow := _OLD_FLOW.search(line)):
            self._begin_flow(line, flow)
        elif "percentiles (" in line and (title := _PERCENTILES.search(line)):
            self._begin_percentiles(title)
        elif "lat" in line and (latency := _LATENCY.search(line)):
            self._read_latency(latency)
        elif "issued" in line and (issued := _ISSUED.search(line)):
            if self._entry is not None:
                self._entry.issued = (int(issued[1]), int(issued[2]), int(issued[3]))
        elif "usr=" in line and (cpu := _CPU.search(line)):
            if self._entry is not None:
                self._entry.cpu_percent = (number(cpu[1]), number(cpu[2]))
        elif "first_error" in line and (errors := _ERRORS.search(line)):
            if self._entry is not None and int(errors[1]):
                self._entry.error = self._entry.error or int(errors[2])
        elif "Run status" in line and (group := _GROUP.search(line)):
            self._group, self._entry, self._flow, self._summed = int(group[1]), None, None, True
        elif summary := _SUM.search(line):
            self._read_sum(summary)
        elif "fio" in line:
            self._read_version_or_command(line)

    @property
    def _run(self) -> Run:
        return self.runs[-1]

    def _new_run(self) -> Run:
        self.runs.append(Run())
        self._entry, self._flow, self._percentiles, self._summed = None, None, None, False
        return self._run

    def _begin_section(self, line: str, match: re.Match[str]) -> None:
        run = self._new_run() if self._run.entries or self._run.sums else self._run
        group, pattern, sizes, engine, depth = match.groups()
        options = {"rw": pattern, "ioengine": engine, "iodepth": depth, **_block_sizes(sizes, pattern)}
        _, name = _name(line[: match.start()])
        section = Section(name, int(group), options)
        if section not in run.sections[-1:]:
            run.sections.append(section)

    def _begin_entry(self, line: str, match: re.Match[str]) -> None:
        client, name = _name(line[: match.start()].rstrip().removesuffix(":"))
        entry = Entry(
            name=name, client=client, group=int(match[1]), jobs=int(match[2]), error=int(match[3]),
            error_text=match[4] or "", pid=int(match[5]) if match[5] else None, line=self.line,
        )  # fmt: skip
        if self._summed:
            same = {each.process for each in self._run.entries if each.pid is not None}
            if entry.process in same:  # printed again: --status-interval
                self._run.before, self._run.entries, self._run.sums = self._run.entries, [], []
                self._summed = False
            else:
                self._new_run()
        self._run.entries.append(entry)
        self._entry, self._flow, self._percentiles = entry, None, None

    def _begin_flow(self, line: str, match: re.Match[str]) -> None:
        if match.re is _FLOW:
            word, iops, rate, same_rate, runtime = match.groups()
            version = self._run.version
            moved, same = amount(rate, version), amount(same_rate or rate, version)
            moved = same if same.step * 2 < moved.step else moved
            flow = Flow(_direction(word), amount(iops, version), moved, int(runtime) if runtime else None)
        else:
            word, _, rate, iops, runtime = match.groups()
            flow = Flow(_direction(word), amount(iops, old=True), amount(rate, old=True), int(runtime))
        if self._entry is None or any(each.direction is flow.direction for each in self._entry.flows):
            if self._summed or (self._run.entries and not self._run.entries[-1].jobs):
                self._new_run()
            _, name = _name(line[: match.start()])
            self._entry = Entry(name=name, line=self.line)
            self._run.entries.append(self._entry)
        self._entry.flows.append(flow)
        self._flow, self._percentiles = flow, None

    def _read_latency(self, match: re.Match[str]) -> None:
        if self._flow is None or match[1] in self._flow.latencies:
            return
        unit = _UNITS[match[2]]
        low, high = (amount(digits + prefix) * unit for digits, prefix in ((match[3], match[4]), (match[5], match[6])))
        self._flow.latencies[match[1]] = (low, high, number(match[7]) * unit, number(match[8]) * unit)

    def _begin_percentiles(self, match: re.Match[str]) -> None:
        self._percentiles, self._unit = None, _UNITS[match[2]]
        if self._flow is not None and match[1] in KINDS:
            self._percentiles = self._flow.percentiles.setdefault(match[1], {})

    def _read_percentiles(self, line: str) -> None:
        if self._percentiles is None:
            return
        for percent, value in _PERCENTILE.findall(line):
            if 0 < float(percent) <= 100:
                self._percentiles.setdefault(float(percent), number(value, "percentile") * self._unit)

    def _read_sum(self, match: re.Match[str]) -> None:
        word, rate, _, longest, old_rate, old_longest = match.groups()
        if self._run.entries or any(
            (each.group, each.direction) == (self._group, _direction(word.lower())) for each in self._run.sums
        ):
            if not self._run.entries:
                self._new_run()
            else:
                return
        moved = amount(rate) if rate else amount(old_rate, old=True)
        self._run.sums.append(Sum(self._group, _direction(word.lower()), moved, int(longest or old_longest)))

    def _read_version_or_command(self, line: str) -> None:
        if version := _VERSION.search(line):
            run = self._new_run() if self._run.entries or self._run.sums else self._run
            run.version = version[1].rstrip(".")
        elif command := _COMMAND.search(line):
            run = self._new_run() if self._run.entries or self._run.sums else self._run
            run.command = _options(command[1])


def _direction(word: str) -> Direction | None:
    return None if word == "mixed" else Direction(word)


def _name(text: str) -> tuple[str, str]:
    """The client and the name in front of an entry, without the marks of quotations and logs."""
    text = text[-_MAX_NAME - 100 :]
    client = ""
    if match := _CLIENT.search(text):
        client, text = match[1], text[match.end() :]
    return client, text.lstrip(" >|#*\t").strip()[:_MAX_NAME]


def _block_sizes(text: str, pattern: str) -> dict[str, str]:
    """fio's option for the ranges `(R) 4096B-4096B, (W) …` or `4K-4K/4K-4K` of reads and writes."""
    pairs = [(_size(low), _size(high)) for low, high in _SIZES.findall(text)]
    if "seq" in text or not pairs:
        return {"bs_is_seq_rand": text}
    reads, writes, trims = pairs[0], pairs[min(1, len(pairs) - 1)], pairs[-1]
    used = {"read": [reads], "randread": [reads], "rw": [reads, writes], "randrw": [reads, writes]}
    used |= {"trim": [trims], "randtrim": [trims]}
    (low, high), (write_low, write_high) = (used.get(pattern, [writes]) * 2)[:2]
    if low == high and write_low == write_high:
        return {"bs": f"{low},{write_low}"}
    same = (low, high) == (write_low, write_high)
    return {"bsrange": f"{low}-{high}" if same else f"{low}-{high},{write_low}-{write_high}"}


def _size(text: str) -> int:
    """Bytes of `4096B`, `16.0KiB`, `4K` or, with kb_base=1000, `4.10kB`."""
    match = _AMOUNT.fullmatch(text)
    power = _PREFIXES.index((match and match[2].lower()) or " ")
    base = 1000 if match and match[4] and not match[3] else 1024
    return round(number(match[1] if match else text, "block size") * float(base**power))


def _options(text: str) -> dict[str, str]:
    """Options of a command line. None if it names a job file, several jobs or values of the shell."""
    options: dict[str, str] = {}
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # a quotation mark without its end
        return {}
    place = 0
    while place < len(words) and not _AFTER_COMMAND.fullmatch(words[place]):
        option = _OPTION.fullmatch(words[place])
        place += 1
        if option is None:
            return {}
        name, value = option[1], option[2]
        if value is None:
            value = ""
            if place < len(words) and not words[place].startswith("-") and not _AFTER_COMMAND.fullmatch(words[place]):
                value, place = words[place], place + 1
        if options.get(name, value) != value or "$" in value:
            return {}
        options[name] = value
    return options
