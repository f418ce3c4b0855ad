"""`python -m dev.job_file_proof FOLDER`: run fio on job files and on their plans, and compare the I/Os.

Every `*.fio` of the folder is made small (64 MiB, one second, four processes), and its targets become files in a
scratch directory. fio runs the file, then the jobs that a worker would run for the plan. Both write a log of all I/Os
with their offsets, one for each process (`write_lat_log` with `log_offset`; `write_iolog` would mix the processes).
These must agree: the processes, the share of each direction, the block sizes, how many I/Os continue at the end of one
that was in flight shortly before, the distribution of the offsets, the depth, and the bytes moved if an amount ends the
job. Differences that the plan's note names are not compared. Files that fio itself cannot run here are listed with
fio's message.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dev.console import columns
from webapp.core.errors import Refusal
from webapp.plans.expand import PlannedTrial, expand
from webapp.plans.fitness import TargetFacts
from webapp.plans.jobfile.jobs import Job, read_job
from webapp.plans.jobfile.lines import read_lines
from webapp.plans.jobfile.reader import read_job_file
from worker.contract.workload import FioWorkload, Stream, TargetKind, TargetRef
from worker.recipes import render
from worker.recipes.base import RecipeError
from worker.recipes.fio.option_values import in_bytes
from worker.recipes.fio.options import ALLOWED
from worker.recipes.steps import render_prefill

SIZE = 64 * 2**20
LIMIT_S = 40
MOST = {"numjobs": 4, "nrfiles": 16, "loops": 2, "runtime": 1}
_UNITS_AND_RAMP = ("kb_base", "ramp_time")  # sizes are in bytes; a log without the ramp would begin anywhere
SIZES = ("size", "filesize", "io_size", "offset", "offset_increment")
# Options about targets, logs and times before the measurement: the tool sets them, or they would take long.
DROPPED = frozenset({
    "filename", "directory", "filename_format", "startdelay", "write_bw_log", "write_lat_log", "write_iolog",
    "write_iops_log", "write_hist_log", "log_avg_msec", "log_hist_msec", "log_offset", "log_max_value", "per_job_logs",
    "disable_lat", "disable_clat", "disable_slat", "gtod_reduce", "unlink", "unlink_each_loop", "allow_file_create",
    "group_reporting", "verify_dump", "verify_state_save", "output", "output-format", "eta", "minimal", "kb_base",
    "status-interval", "description", "name", "error_dump", "exitall_on_error", "create_only",
})  # fmt: skip
VARIABLES = {"ncpus": "2", "pagesize": "4096", "mb_memory": "1024"}
SHARE = 0.05  # largest difference of shares
DEPTHS = 0.5  # largest difference of depths, in powers of two
BUCKETS = 16  # of the offsets


@dataclass(frozen=True)
class Logged:
    """The I/Os of one process in the order of their ends: direction, block size and offset in bytes."""

    rows: np.ndarray

    def continued(self, depth: int) -> float:
        """The share of I/Os that begin where the one before ended. I/Os in flight end in any order: for a depth above
        1, the share of those beside one of the last `2 * depth`."""
        if depth == 1:
            return float((self.rows[1:, 2] == self.rows[:-1, 1:].sum(axis=1)).mean())
        recent = deque[tuple[int, int]](maxlen=2 * depth)
        beside = 0
        for length, offset in self.rows[:, 1:].tolist():
            beside += any(offset in (end, start - length) for start, end in recent)
            recent.append((offset, offset + length))
        return beside / len(self.rows)

    def shares(self, column: int) -> dict[int, float]:
        counts = Counter(self.rows[:, column].tolist())
        return {value: count / max(1, len(self.rows)) for value, count in counts.items()}


@dataclass(frozen=True)
class Ran:
    """What fio did for one job: its processes, and the largest and the mean depth as powers of two."""

    processes: list[Logged]
    depths: tuple[float, float]


@dataclass(frozen=True)
class Verdict:
    name: str
    state: str  # agrees, differs, refused, skipped
    words: str
    jobs: int = 0


def small(text: str) -> str:
    """The job file with small sizes and times, one section for each job. Raises JobFileError."""
    sections = []
    for section in read_lines(text, VARIABLES, {}).sections:
        base = 1000 if any(line.option == "kb_base" and line.value == "1000" for line in section.lines) else 1024
        last = {ALLOWED[line.option].name if line.option in ALLOWED else line.option: line for line in section.lines}
        lines = [
            f"{name}={_small(name, line.value, base)}" for name, line in last.items() if name not in _UNITS_AND_RAMP
        ]
        if {"size", "filesize", "filename"}.isdisjoint(last):  # given on the command line
            lines.append(f"size={SIZE}")
        sections.append("\n".join([f"[{section.name}]", *(line.removesuffix("=") for line in lines)]))
    return "\n".join(sections) + "\n"


def _small(name: str, value: str, base: int) -> str:
    plain = value if name in ("runtime", "verify_pattern", "buffer_pattern") else in_bytes(value, base)
    if name in MOST:
        digits = "".join(character for character in plain if character.isdigit())
        return str(min(int(digits or 1), MOST[name])) if digits != "0" else "0"
    if name in SIZES and plain.isdigit():
        return str(min(int(plain), SIZE if name != "offset_increment" else SIZE // 4))
    return plain


def original(jobs: Sequence[Job], folder: Path, target: Path) -> str:
    """The job file with scratch files and logs."""
    names = list(dict.fromkeys(name for job in jobs for name in job.file_names))
    files = {name: target / f"shared{number}" for number, name in enumerate(names)}
    sections = []
    for number, job in enumerate(jobs):
        own = ":".join(str(files[name]) for name in job.file_names)
        lines = [f"[{_label(number)}]", f"filename={own}" if own else f"directory={target}"]
        lines += [f"{name}={line.value}".removesuffix("=") for name, line in job.given.items() if _kept(name)]
        awaited = job.text("wait_for")
        place = next((_label(index) for index, other in enumerate(jobs) if other.name == awaited), "")
        lines += [f"wait_for={place}"] if place else []
        lines += [f"write_lat_log={folder}/{_label(number)}", "log_offset=1", "verify_state_save=0"]
        sections.append("\n".join(lines))
    for path in files.values():
        _fill(path)
    return "\n".join(sections) + "\n"


def _label(number: int) -> str:
    return f"j{number}"


def _kept(name: str) -> bool:
    return name in ALLOWED and name not in DROPPED and name != "wait_for"


def _fill(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_bytes(np.random.default_rng(1).bytes(SIZE))


def fio(text: str, folder: Path) -> tuple[int, str, dict[str, list[dict[str, object]]]]:
    """The exit code, the messages, and the entries of fio's JSON by the names of jobs."""
    argv = ("fio", "--output-format=json", "--eta=never", "-")
    done = subprocess.run(argv, input=text, capture_output=True, text=True, cwd=folder, timeout=LIMIT_S, check=False)
    begin = done.stdout.find("{")
    found: dict[str, list[dict[str, object]]] = {}
    try:
        entries = json.loads(done.stdout[begin:])["jobs"] if begin >= 0 else []
    except ValueError:
        entries = []
    for entry in entries:
        found.setdefault(str(entry["jobname"]), []).append(entry)
    return done.returncode, " ".join((done.stderr or done.stdout[:300]).split())[:300], found


def ran(prefix: Path, entries: Sequence[Mapping[str, object]]) -> Ran:
    logs = sorted(prefix.parent.glob(f"{prefix.name}_lat.*.log"), key=lambda path: int(path.name.split(".")[-2]))
    return Ran([_logged(path) for path in logs], max((_depths(entry) for entry in entries), default=(0.0, 0.0)))


def _logged(path: Path) -> Logged:
    if not path.stat().st_size:
        return Logged(np.zeros((0, 3), dtype=np.int64))
    return Logged(np.loadtxt(path, delimiter=",", usecols=(2, 3, 4), dtype=np.int64, ndmin=2))


def _depths(entry: Mapping[str, object]) -> tuple[float, float]:
    """The largest depth with 5 % of the I/Os, and the mean over all I/Os, as powers of two: fio's classes."""
    levels = entry["iodepth_level"]
    assert isinstance(levels, dict)
    shares = {math.log2(float(level.removeprefix(">="))): float(share) for level, share in levels.items()}
    largest = max((depth for depth, share in shares.items() if share >= 5), default=0.0)
    return largest, sum(depth * share for depth, share in shares.items()) / 100


def ours(trial: PlannedTrial, target: Path, folder: Path, shared: Sequence[Path | None]) -> list[Ran]:
    """Runs the job of every stream at the same time, each in an fio of its own, as the worker does."""
    running = []
    for number, (planned, path) in enumerate(zip(trial.streams, shared, strict=True)):
        kind = TargetKind.FILE if path else TargetKind.DIRECTORY
        where = TargetRef(id="t", kind=kind, path=str(path or target), stable_id="s")
        stream = Stream(number=number, name=planned.name, target=where, workload=planned.workload)
        directory = path.parent if path else target
        if prefill := render_prefill(stream):
            fio(prefill.job_text, directory)
        recipe = render(stream)
        logs = f"write_lat_log={folder}/{_label(number)}\nlog_offset=1\n"
        argv = ("fio", "--output-format=json", "--eta=never", "-")
        child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=directory
        )
        running.append((child, recipe.job_text + logs))
    for child, text in running:
        assert child.stdin
        child.stdin.write(text)
        child.stdin.close()
        child.stdin = None
    found = []
    for number, (child, _) in enumerate(running):
        out, err = child.communicate(timeout=LIMIT_S)
        if child.returncode:
            raise RecipeError(f"fio ended the plan's job with {child.returncode}: {' '.join(err.split())[:300]}")
        found.append(ran(folder / _label(number), json.loads(out[out.find("{") :])["jobs"]))
    return found


def differences(before: Ran, after: Ran, work: FioWorkload, job: Job) -> Iterator[str]:
    """What differs and is not in the notes of the job."""
    notes = " ".join(job.notes)
    if len(before.processes) != len(after.processes):
        yield f"{len(before.processes)} processes became {len(after.processes)}"
        return
    waits = work.options.limits_rate or work.options.thinktime  # then the drive decides how many I/Os are in flight
    # A queue that the drive does not fill has any largest depth; the mean of a short job is that of its beginning.
    apart = all(abs(one - other) > DEPTHS for one, other in zip(before.depths, after.depths, strict=True))
    if apart and "in flight" not in notes and not waits:
        yield f"depth {2 ** before.depths[0]:g} became {2 ** after.depths[0]:g}"
    moved = [sum(int(one.rows[:, 1].sum()) for one in side.processes) for side in (before, after)]
    exact = work.moved_bytes is not None and "its map of visited blocks" not in notes
    if exact and abs(moved[0] - moved[1]) > max(len(before.processes) * work.largest_io_bytes, 0.01 * moved[0]):
        yield f"{moved[0]} bytes became {moved[1]}"
    span = _span(work, job)
    # Drawn instead of visited once: in a small file neighbours come by chance, and more often if each comes once.
    chance = "drawn independently" in notes and 4 * work.iodepth * work.largest_io_bytes > SHARE * span
    for one, other in zip(before.processes, after.processes, strict=True):
        length = min(len(one.rows), len(other.rows))
        if length < 16:
            continue
        first, second = Logged(one.rows[:length]), Logged(other.rows[:length])
        for column, words in ((0, "shares of the directions"), (1, "shares of the block sizes")):
            if gap := _gap(first.shares(column), second.shares(column), length):
                yield f"{words} differ by {gap:.0%}"
        shares = first.continued(work.iodepth), second.continued(work.iodepth)
        if not chance and abs(shares[0] - shares[1]) > 2 * SHARE + 2 / length**0.5:
            yield f"{shares[0]:.0%} of the I/Os continued one before, then {shares[1]:.0%}"
        places = [_shares(side.rows[:, 2] % span * BUCKETS // span) for side in (first, second)]
        if gap := _gap(places[0], places[1], length):
            yield f"the distributions of the offsets differ by {gap:.0%}"


def _span(work: FioWorkload, job: Job) -> int:
    """The part of the offsets in which the processes are compared: that of one process if each has its own files."""
    size = (work.size_bytes or SIZE) + (work.options.offset or 0)
    return size // job.jobs if any("files of their own" in note for note in job.notes) else size


def _shares(values: np.ndarray) -> dict[int, float]:
    return {value: count / len(values) for value, count in Counter(values.tolist()).items()}


def _gap(one: Mapping[int, float], other: Mapping[int, float], length: int) -> float:
    """The largest difference of shares, if it is more than chance and SHARE; else 0."""
    gap = max(abs(one.get(value, 0) - other.get(value, 0)) for value in {*one, *other})
    return gap if gap > SHARE + 3 / length**0.5 else 0.0


def verdict(path: Path, scratch: Path) -> Verdict:
    try:
        text = small(path.read_text())
        document = read_job_file(text)
    except Refusal as refusal:
        return Verdict(path.name, "refused", refusal.message)
    jobs = [read_job(section) for section in read_lines(text, VARIABLES, {}).sections]
    folder = Path(tempfile.mkdtemp(dir=scratch))
    target, logs = folder / "original", folder / "logs"
    for directory in (target, logs, folder / "plan", folder / "plan-logs"):
        directory.mkdir()
    code, words, entries = fio(original(jobs, logs, target), folder)
    if code:
        return Verdict(path.name, "skipped", words)
    before = [ran(logs / _label(number), entries.get(_label(number), [])) for number in range(len(jobs))]
    found: list[str] = []
    place = 0
    for part in document.parts:
        own = jobs[place : place + max(1, len(part.streams))]
        names = list(dict.fromkeys(name for job in own for name in job.file_names))
        shared = [
            folder / "plan" / f"shared{names.index(job.file_names[0])}" if job.file_names else None for job in own
        ]
        facts = [_facts(shared[0], folder / "plan", number) for number in range(max(1, len(names)))]
        alone = type(document)(title="x", parts=(part,), order=document.order, repeats=1)
        made = expand(alone, facts, seed=1)
        if made.problems or not made.trials:
            return Verdict(path.name, "refused", " ".join(made.problems))
        for file in filter(None, shared):
            _fill(file)
        logged = folder / "plan-logs" / str(place)
        logged.mkdir()
        try:
            after = ours(made.trials[0], folder / "plan", logged, shared)
        except RecipeError as error:
            return Verdict(path.name, "differs", str(error))
        for number, (job, now, planned) in enumerate(zip(own, after, made.trials[0].streams, strict=True)):
            assert isinstance(planned.workload, FioWorkload)
            found += [f"{job.name}: {text}" for text in differences(before[place + number], now, planned.workload, job)]
        place += len(own)
    state = "differs" if found else "agrees"
    return Verdict(path.name, state, "; ".join(dict.fromkeys(found)), len(jobs))


def _facts(shared: Path | None, folder: Path, number: int) -> TargetFacts:
    kind = TargetKind.FILE if shared else TargetKind.DIRECTORY
    return TargetFacts(
        id=f"t{number}", kind=kind, path=str(shared or folder), name=f"here/t{number}", stable_id=f"s{number}",
        serial="s", size_bytes=SIZE if shared else 100 * SIZE, settings_allowed=("*",), host_settings_allowed=("*",),
        destroy=True, host_id="here",
    )  # fmt: skip


def verdicts(folder: Path) -> Iterator[Verdict]:
    for path in sorted(folder.glob("*.fio")):
        with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="sweetspot-proof-") as scratch:
            try:
                yield verdict(path, Path(scratch))
            except subprocess.TimeoutExpired:
                yield Verdict(path.name, "skipped", f"fio did not end within {LIMIT_S} s")
            except UnicodeDecodeError:
                yield Verdict(path.name, "skipped", "the file is not UTF-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.job_file_proof", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder with job files, *.fio")
    options = parser.parse_args(argv)
    found = []
    for one in verdicts(options.folder):
        print(f"{one.state:8} {one.name}{f': {one.words}' if one.words else ''}", flush=True)
        found.append(one)
    counts = Counter(one.state for one in found)
    agreed = sum(one.jobs for one in found if one.state == "agrees")
    print("\n".join(columns([[state, str(count)] for state, count in counts.items()])))
    print(f"{agreed} jobs agree.")
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
