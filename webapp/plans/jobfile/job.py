"""Converts one job of a file into the factors of a part.

Options must be on the worker's allowlist; others are refused by name. Missing options get fio's defaults (sequential
reads, psync, buffered), not Sweetspot's, so that the plan measures the same as the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from webapp.plans.factors import FACTORS
from webapp.plans.jobfile.lines import JobProblem, Line, Section
from webapp.plans.points import applicable, with_defaults
from webapp.plans.values import Value, ValueRefused
from worker.contract.workload import IoEngine, Pattern
from worker.recipes.fio.option_values import OptionRefused, sequence
from worker.recipes.fio.options import ALLOWED, Meaning, Option
from worker.recipes.fio.refused_options import REFUSED

_FIO_DEFAULTS: Mapping[str, Value] = {"pattern": "read", "ioengine": "psync", "direct": False}
_STONEWALL = "stonewall"
_OF_BOTH = ("block_size", "block_split", "rate", "rate_iops")  # factors with a separate value of writes
GROUPING = ("part", "on")  # properties of a section that are not factors


@dataclass
class Job:
    """The options of a section, while it is read."""

    section: Section
    problems: list[JobProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # differences from fio
    values: dict[str, Value] = field(default_factory=dict)  # factor -> stored value
    given: dict[str, Line] = field(default_factory=dict)  # option, or factor that it set -> its last line

    @property
    def stonewalled(self) -> bool:
        line = self.given.get(_STONEWALL)
        return line is not None and line.value != "0"

    def line_of(self, name: str) -> int:
        return self.given[name].number if name in self.given else self.section.number

    def refuse(self, option: str, message: str) -> None:
        self.problems.append(JobProblem(self.line_of(option), option, message))


def read_job(section: Section) -> Job:
    """A section's factors; its errors are in `problems`."""
    job = Job(section)
    for option, line in _last_lines(job).items():
        _take(job, option, line)
    if not job.problems:
        job.values = dict(_FIO_DEFAULTS) | job.values
        _whole(job)
    if section.stated:
        job.notes.clear()  # written by Sweetspot: no differences from fio
        _stated(job)
    return job


def _stated(job: Job) -> None:
    """Sweetspot's comments override fio's options, and `block_split` overrides `block_size`."""
    for line in job.section.stated:
        if line.option in GROUPING:
            continue
        try:
            if line.option not in FACTORS:
                raise ValueRefused(f"there is no factor `{line.option}`")
            job.values[line.option] = FACTORS[line.option].values.parse(line.value)
        except ValueError as error:
            job.problems.append(JobProblem(line.number, line.option, f"is refused: {str(error)[:300]}."))
    for other, wins in (("block_size", "block_split"), ("amount", "runtime")):
        if wins in job.values:
            job.values.pop(other, None)


def texts(job: Job) -> dict[str, str]:
    """The factors as text for a plan; call it only if there are no problems."""
    return {name: FACTORS[name].values.write(value) for name, value in job.values.items()}


def whole_point(job: Job) -> dict[str, str]:
    """The factors including defaults, so that all points of a part have the same factors."""
    grid = with_defaults({name: (value,) for name, value in job.values.items()}, drop_caches=False)
    point = applicable({name: value for name, (value,) in grid.items()})
    return {name: FACTORS[name].values.write(value) for name, value in point.items()}


def _last_lines(job: Job) -> dict[str, Line]:
    """Option -> its effective line: the last one, under any of its names."""
    found: dict[str, Line] = {}
    for line in job.section.lines:
        option = ALLOWED.get(line.option)
        if option is None:
            job.problems.append(JobProblem(line.number, line.option, _not_supported(line.option)))
            continue
        found.pop(option.name, None)
        found[option.name] = line
        job.given[option.name] = line
    return found


def _not_supported(option: str) -> str:
    why = f": {REFUSED[option]}" if option in REFUSED else ""
    return f"is not supported by Sweetspot{why}. Remove it."


def _take(job: Job, name: str, line: Line) -> None:
    option = ALLOWED[name]
    try:
        for factor, value in option.read(line.value).items():
            _set(job, factor, _checked(factor, value, option), line)
    except ValueError as error:  # OptionRefused, ValueRefused, or more digits than Python converts to a number
        words = str(error) if not isinstance(error, UnicodeError) else "cannot be read"
        job.problems.append(JobProblem(line.number, line.option, f"is refused: {words[:300]}."))


def _checked(factor: str, value: Value, option: Option) -> Value:
    """Check the factor's limits, except for sizes that are still to be divided among files."""
    if option.meaning in (Meaning.PER_JOB, Meaning.OVER_FILES) and factor != "size_percent":
        if not isinstance(value, int) or not 0 < value <= 2**60:
            raise ValueRefused("the size is not possible")
        return value
    if option.meaning is Meaning.SEQUENCE and factor == "skip":
        return value
    return FACTORS[factor].values.parse(value if isinstance(value, str) else FACTORS[factor].values.write(value))


def _set(job: Job, factor: str, value: Value, line: Line) -> None:
    if factor in job.values and job.values[factor] != value:
        other = job.given[factor].option
        job.problems.append(JobProblem(line.number, line.option, f"contradicts `{other}`: remove one of them."))
        return
    job.values[factor] = value
    job.given[factor] = line


def _whole(job: Job) -> None:
    """Values that depend on the whole job: order of offsets, sizes of files, amounts, depth, the end."""
    for step in (_depth, _split, _mix, _sequence, _priority, _sizes, _end, _differences):
        step(job)


def _depth(job: Job) -> None:
    engine = IoEngine(str(job.values["ioengine"]))
    if not engine.asynchronous and int(job.values.get("iodepth") or 1) > 1:
        job.refuse(
            "iodepth",
            f"has no effect with {engine}, which has one I/O in flight: remove it, or choose another I/O engine.",
        )


def _split(job: Job) -> None:
    """bssplit and bsrange override bs, as in fio."""
    if "block_split" in job.values or "block_range" in job.values:
        job.values.pop("block_size", None)
        job.values.pop("write_block_size", None)


def _mix(job: Job) -> None:
    """The share of reads; 50 % by default, and without effect if the pattern does not mix.

    If the pattern does not mix, separate values of reads and writes become a single value.
    """
    pattern = Pattern(str(job.values["pattern"]))
    if pattern.mixed:
        return
    job.values.pop("read_percent", None)
    for name in _OF_BOTH:
        of_writes = job.values.pop(f"write_{name}", None)
        if of_writes is not None and pattern.writes:
            job.values[name] = of_writes


def _sequence(job: Job) -> None:
    gap = job.values.pop("skip", None)
    if not isinstance(gap, int):
        return
    try:
        job.values |= sequence(gap, int(job.values.get("block_size") or FACTORS["block_size"].default or 0))
    except OptionRefused as refused:
        job.refuse("rw", str(refused))


def _priority(job: Job) -> None:
    """fio's prioclass and prio are one factor."""
    lines = {name: job.given[name].value for name in ("prioclass", "prio") if name in job.given}
    kind = {"1": "rt", "2": "be", "3": "idle"}.get(lines.get("prioclass", "2").strip(), "none")
    if lines:
        job.values["ionice"] = f"{kind}/{int(lines.get('prio', '0'))}" if kind in ("rt", "be") else kind


def _sizes(job: Job) -> None:
    """fio's size is the total of one job's files, Sweetspot's is the size of each file."""
    line, size = job.given.get("size"), job.values.get("size")
    if line is None or not isinstance(size, int) or ALLOWED[line.option].meaning is not Meaning.OVER_FILES:
        return
    each, rest = divmod(size, int(job.values.get("files") or 1))
    if rest or each % 512:
        job.refuse("size", f"of {size} bytes cannot be divided among the files in whole blocks of 512 bytes.")
    job.values["size"] = each


def _end(job: Job) -> None:
    """A run time, an amount, or without either fio's default: every job goes once through its size."""
    jobs = int(job.values.get("numjobs") or 1) * int(job.given["loops"].value if "loops" in job.given else 1)
    amount, size = job.values.get("amount"), job.values.get("size")
    if "runtime" in job.values:
        if amount is not None:
            job.refuse("runtime", "and `io_size` are both given, and fio ends at the first: remove one of them.")
        elif "time_based" not in job.given:
            job.notes.append("without `time_based` fio would end early once every job has gone through its size")
        return
    total = (
        amount if isinstance(amount, int) else size * int(job.values.get("files") or 1) if isinstance(size, int) else 0
    )
    if not total:
        job.problems.append(JobProblem(job.section.number, "", f"[{job.section.name}] never ends: give it a runtime."))
    elif job.values.get("ramp"):
        job.refuse("ramp_time", "needs a runtime: the bytes moved during the ramp would be missing from the amount.")
    else:
        job.values["amount"] = min(total * jobs, 2**60)


def _differences(job: Job) -> None:
    """Differences between fio and Sweetspot, for the plan's note."""
    pattern, jobs = Pattern(str(job.values["pattern"])), int(job.values.get("numjobs") or 1)
    if pattern.random and "norandommap" not in job.given:
        job.notes.append("fio would visit every block once before any twice; here every offset is drawn independently")
    if pattern.stores and "buffers" not in job.values:
        job.notes.append("fio would scramble one random buffer; here the data does not compress")
    if jobs > 1 and not pattern.random:
        job.notes.append("fio's jobs would all begin at the same offset; here each uses a separate part of the file")
    if jobs > 1 and "filename" not in job.given:
        job.notes.append("fio's jobs would have files of their own; here they share them")
    job.notes.extend(_logging(job))
    for option in ("filename", "directory"):
        if option in job.given:
            job.notes.append(
                f"`{option}={job.given[option].value}` is left out: a run's targets are chosen when it starts"
            )


def _logging(job: Job) -> list[str]:
    """One note about all options of logs."""
    named = [name for name in job.given if name in ALLOWED and ALLOWED[name].meaning is Meaning.LOGGING]
    if not named:
        return []
    return [f"{', '.join(f'`{name}`' for name in named)} ignored: {ALLOWED[named[0]].note}"]
