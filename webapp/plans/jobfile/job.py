"""One job of a file -> factors of a part.

Options come through the worker's allowlist; what is not on it is refused by name. fio's own defaults are kept
(sequential reads, psync, buffered), not Sweetspot's, so that the plan measures what the file would.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from webapp.plans.factors import FACTORS
from webapp.plans.jobfile.lines import JobProblem, Line, Section
from webapp.plans.points import applicable, with_defaults
from webapp.plans.values import Value, ValueRefused
from worker.contract.workload import IoEngine, Pattern
from worker.recipes.fio.options import ALLOWED, Meaning, Option

_FIO_DEFAULTS: Mapping[str, Value] = {"pattern": "read", "ioengine": "psync", "direct": False}
_STONEWALL = "stonewall"
GROUPING = ("part", "on")  # stated of a section, and no factors


@dataclass
class Job:
    """What a section says, while it is read."""

    section: Section
    problems: list[JobProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # where fio would do otherwise
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
    """A section's factors; what is wrong with it is in `problems`."""
    job = Job(section)
    for option, line in _last_lines(job).items():
        _take(job, option, line)
    if not job.problems:
        job.values = dict(_FIO_DEFAULTS) | job.values
        _whole(job)
    if section.stated:
        job.notes.clear()  # written by Sweetspot: nothing is done otherwise
        _stated(job)
    return job


def _stated(job: Job) -> None:
    """What Sweetspot said in comments wins over fio's options, as `block_split` over `block_size`."""
    for line in job.section.stated:
        if line.option in GROUPING:
            continue
        try:
            if line.option not in FACTORS:
                raise ValueRefused(f"there is no factor `{line.option}`")
            job.values[line.option] = FACTORS[line.option].parse(line.value)
        except ValueError as error:
            job.problems.append(JobProblem(line.number, line.option, f"is refused: {str(error)[:300]}."))
    for other, wins in (("block_size", "block_split"), ("amount", "runtime")):
        if wins in job.values:
            job.values.pop(other, None)


def texts(job: Job) -> dict[str, str]:
    """The factors as a plan writes them; call it only without problems."""
    return {name: FACTORS[name].write(value) for name, value in job.values.items()}


def whole_point(job: Job) -> dict[str, str]:
    """The factors with those at their default, so that the points of one part name the same ones."""
    grid = with_defaults({name: (value,) for name, value in job.values.items()}, drop_caches=False)
    return {name: FACTORS[name].write(value) for name, value in applicable({n: v for n, (v,) in grid.items()}).items()}


def _last_lines(job: Job) -> dict[str, Line]:
    """Option -> the line that counts: the last one, whichever of its names it used."""
    found: dict[str, Line] = {}
    for line in job.section.lines:
        option = ALLOWED.get(line.option)
        if option is None:
            job.problems.append(JobProblem(line.number, line.option, "is not an option that Sweetspot takes."))
            continue
        found.pop(option.name, None)
        found[option.name] = line
        job.given[option.name] = line
    return found


def _take(job: Job, name: str, line: Line) -> None:
    option = ALLOWED[name]
    try:
        for factor, value in option.read(line.value).items():
            _set(job, factor, _checked(factor, value, option), line)
    except ValueError as error:  # OptionRefused, ValueRefused, or digits beyond what Python turns into a number
        words = str(error) if not isinstance(error, UnicodeError) else "cannot be read"
        job.problems.append(JobProblem(line.number, line.option, f"is refused: {words[:300]}."))


def _checked(factor: str, value: Value, option: Option) -> Value:
    """Through the factor's own limits, but for sizes that are still to be shared out."""
    if option.meaning in (Meaning.PER_JOB, Meaning.OVER_FILES):
        if not isinstance(value, int) or not 0 < value <= 2**60:
            raise ValueRefused("it is no size that can be")
        return value
    return FACTORS[factor].parse(value if isinstance(value, str) else FACTORS[factor].write(value))


def _set(job: Job, factor: str, value: Value, line: Line) -> None:
    if factor in job.values and job.values[factor] != value:
        other = job.given[factor].option
        job.problems.append(JobProblem(line.number, line.option, f"contradicts `{other}`: take one of them out."))
        return
    job.values[factor] = value
    job.given[factor] = line


def _whole(job: Job) -> None:
    """What only the whole job can say: sizes of files, amounts, depth, the end."""
    for step in (_depth, _split, _mix, _sizes, _end, _differences):
        step(job)


def _depth(job: Job) -> None:
    if job.values["ioengine"] == IoEngine.PSYNC and int(job.values.get("iodepth") or 1) > 1:
        job.refuse("iodepth", "has no effect with psync, which has one I/O in flight: take it out, or another engine.")


def _split(job: Job) -> None:
    """bssplit wins over bs in fio too."""
    if "block_split" in job.values:
        job.values.pop("block_size", None)


def _mix(job: Job) -> None:
    """Half reads where the file does not say; of no meaning where nothing is mixed."""
    if not Pattern(str(job.values["pattern"])).mixed:
        job.values.pop("read_percent", None)


def _sizes(job: Job) -> None:
    """fio's size is of all files of one job together, Sweetspot's of each file."""
    line, size = job.given.get("size"), job.values.get("size")
    if line is None or not isinstance(size, int) or ALLOWED[line.option].meaning is not Meaning.OVER_FILES:
        return
    each, rest = divmod(size, int(job.values.get("files") or 1))
    if rest or each % 512:
        job.refuse("size", f"of {size} bytes cannot be shared out to the files in whole blocks of 512 bytes.")
    job.values["size"] = each


def _end(job: Job) -> None:
    """A time, an amount, or as fio does without either: every job goes once through its size."""
    jobs = int(job.values.get("numjobs") or 1)
    amount, size = job.values.get("amount"), job.values.get("size")
    if "runtime" in job.values:
        if amount is not None:
            job.refuse("runtime", "and `io_size` are both given, and fio ends at the first: take one of them out.")
        elif "time_based" not in job.given:
            job.notes.append("without `time_based` fio would end early once every job has gone through its size")
        return
    total = (
        amount if isinstance(amount, int) else size * int(job.values.get("files") or 1) if isinstance(size, int) else 0
    )
    if not total:
        job.problems.append(JobProblem(job.section.number, "", f"[{job.section.name}] never ends: give it a runtime."))
    elif job.values.get("ramp"):
        job.refuse("ramp_time", "needs a runtime: what the ramp moves would be missing from the amount.")
    else:
        job.values["amount"] = min(total * jobs, 2**60)


def _differences(job: Job) -> None:
    """Where fio would do otherwise than Sweetspot does; said in the plan's note."""
    pattern, jobs = Pattern(str(job.values["pattern"])), int(job.values.get("numjobs") or 1)
    if pattern.random and "norandommap" not in job.given:
        job.notes.append("fio would visit every block once before any twice; here every offset is drawn independently")
    if pattern.writes and "buffers" not in job.values:
        job.notes.append("fio would scramble one random buffer; here the data does not compress")
    if jobs > 1 and not pattern.random:
        job.notes.append("fio's jobs would all begin at the same offset; here each has a part of the file to itself")
    if jobs > 1 and "filename" not in job.given:
        job.notes.append("fio's jobs would have files of their own; here they share them")
    for option in ("filename", "directory"):
        if option in job.given:
            job.notes.append(
                f"`{option}={job.given[option].value}` is left out: a run's targets are chosen when it starts"
            )
