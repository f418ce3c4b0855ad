"""`make bench-import`: time and memory of `manage.py import_results` on a large collection of fio's files.

The collection is made from the examples of the formats: JSON files with other numbers, and logs with a row a second. As
a yardstick, fio-plot's reader of the same files, if `--fio-plot` names the Python of an environment that has it.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.bench.figures import Figure, figure, show
from dev.console import run_command, say, step
from dev.stack import lifecycle, services
from dev.stack.temporary import installation

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "webapp/imports/formats/tests/data/fio-json/3.33-group.json"
JSON_WANTED_S, ALL_WANTED_S, MEMORY_WANTED_MIB = 15, 120, 300
KINDS = ("bw", "iops", "lat", "clat")
DEPTHS, PATTERNS = (1, 2, 4, 8, 16, 32, 64), ("randread", "randwrite", "read", "write")
IOPS = (5_000, 50_000)  # of one job
LARGE_FOLDER = 200  # tests in one folder, which then has more than 5,000 files with their logs
YARDSTICK = """
import sys
from pathlib import Path
from fio_plot.fiolib import dataimport, jsonimport
for path in Path(sys.argv[1]).rglob(sys.argv[2]):
    if path.suffix == ".json":
        jsonimport.import_json_data(str(path))
    else:
        dataimport.readLogData({}, {"filename": str(path)})
"""


@dataclass(frozen=True)
class Cost:
    elapsed_s: float
    cpu_s: float  # of the process that reads
    memory_mib: float  # its peak


def main(arguments: Sequence[str]) -> int:
    """Make the files, import the JSON files alone and then everything; 1 if a figure misses its limit."""
    options = _options(arguments)
    purpose = f"import-{os.getpid()}"
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, installation(purpose) as state:
        lifecycle.start_stores(state, durable=False)
        os.environ.update(services.environment(state))
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity=0"], cwd=ROOT, check=True)
        figures = _measure(Path(folder), options)
    return show(figures, as_json=options.json)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-import", description="Time and memory of importing.")
    parser.add_argument("--json-files", type=int, default=3450)
    parser.add_argument("--logs", type=int, default=106_685)
    parser.add_argument("--rows", type=int, default=320, help="of a log")
    parser.add_argument("--fio-plot", metavar="PYTHON", help="of an environment with fio-plot, as a yardstick")
    parser.add_argument("--folder", metavar="FOLDER", help="where the files are made: they need about 1 GB")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON too")
    return parser.parse_args(arguments)


def _measure(folder: Path, options: argparse.Namespace) -> list[Figure]:
    figures = []
    with step(f"making {options.json_files:,} JSON files"):
        _make_json(folder / "json", options.json_files)
    cost, results = _imported(folder / "json", options.json_files)
    figures += _figures("JSON files", cost, JSON_WANTED_S)
    figures += _ratio(options, folder / "json", "*.json", cost, "JSON: fio-plot's reader / import")
    with step(f"making {options.logs:,} logs of {options.rows:,} rows beside other JSON files"):
        shutil.rmtree(folder / "json")
        tests = _make_json(folder / "all", options.json_files, options.logs, options.rows, seed=2)
        size = _make_logs(tests, options.logs, options.rows)
    say(f"    {size / 1e6:,.0f} MB of logs, {options.logs * options.rows / 1e6:.1f} M rows")
    cost, with_logs = _imported(folder / "all", options.json_files + options.logs)
    if with_logs != results:
        raise RuntimeError(f"{results:,} results without logs and {with_logs:,} with logs: logs were not joined.")
    figures += _figures("JSON files and logs", cost, ALL_WANTED_S)
    figures += _ratio(options, folder / "all", "*.log", cost, "logs: fio-plot's reader / whole import")
    wanted, met = f"< {MEMORY_WANTED_MIB}", cost.memory_mib < MEMORY_WANTED_MIB
    figures.append(figure("JSON files and logs, peak memory", "MiB", [cost.memory_mib], wanted, met=met))
    return figures


def _figures(name: str, cost: Cost, wanted_s: int) -> list[Figure]:
    met = cost.elapsed_s < wanted_s
    return [
        figure(name, "s", [cost.elapsed_s], f"< {wanted_s}", met=met),
        figure(f"{name}, CPU time without PostgreSQL", "s", [cost.cpu_s], "", met=True),
    ]


def _make_json(folder: Path, count: int, logs: int = 0, rows: int = 1, seed: int = 1) -> dict[Path, Mapping[str, int]]:
    """The paths without `.json`, each with the level of its logs by kind. Each file is a test of its own: another
    drive, pattern or depth. Its I/Os, bytes and latencies are those of its logs, so that they are joined."""
    chance = random.Random(seed)  # noqa: S311 - the same numbers each time
    document = json.loads(EXAMPLE.read_text())
    job = document["jobs"][0]
    made: dict[Path, Mapping[str, int]] = {}
    for number in range(count):
        drive, depth, pattern = _test(number)
        of_logs = Counter(KINDS[job % len(KINDS)] for job in range((logs - number - 1) // count + 1))
        iops = chance.randrange(*IOPS)
        document["timestamp"] = 1_600_000_000 + seed * 10_000_000 + number
        document["global options"] = {"rw": pattern, "iodepth": str(depth), "numjobs": "1", "bs": "4k"}
        job["job options"] = {"rw": pattern, "iodepth": str(depth), "numjobs": "1", "bs": "4k"}
        for direction in ("read", "write"):
            own = iops * rows if direction in pattern else 0
            ios, moved = own * (of_logs["iops"] or 1), 4096 * own * (of_logs["bw"] or 1)
            runtime_ms = 1000 * rows if own else 0
            rates = {"iops": ios / rows, "bw_bytes": moved // rows, "bw": moved // rows // 1024}
            job[direction] |= {"total_ios": ios, "io_bytes": moved, "runtime": runtime_ms, **rates}
        name = folder / f"host{drive % 7}/drive{drive}" / f"{pattern}-{depth}-1"
        name.parent.mkdir(parents=True, exist_ok=True)
        name.with_name(f"{name.name}.json").write_text(json.dumps(document, indent=1))
        latencies = job["read" if "read" in pattern else "write"]
        means = {kind: round(latencies[f"{kind}_ns"]["mean"]) for kind in ("lat", "clat")}
        made[name] = {"bw": 4 * iops, "iops": iops, **means}
    return made


def _test(number: int) -> tuple[int, int, str]:
    """Drive, queue depth and pattern. Drive 0 has many tests in its folder, each other one those of usual depths."""
    if number < LARGE_FOLDER:
        return 0, number // len(PATTERNS) + 1, PATTERNS[number % len(PATTERNS)]
    drive, rest = divmod(number - LARGE_FOLDER, len(DEPTHS) * len(PATTERNS))
    return drive + 1, DEPTHS[rest % len(DEPTHS)], PATTERNS[rest // len(DEPTHS)]


def _make_logs(tests: Mapping[Path, Mapping[str, int]], count: int, rows: int) -> int:
    """Logs of the tests, in turn over kinds and jobs; their bytes."""
    names, total = list(tests), 0
    for number in range(count):
        job, test = divmod(number, len(names))
        pattern, depth, _ = names[test].name.rsplit("-", 2)
        kind, of_job = KINDS[job % len(KINDS)], job // len(KINDS) + 1
        direction = 0 if "read" in pattern else 1
        level = tests[names[test]][kind]
        text = "".join(f"{1000 * (row + 1)}, {level + row % 97}, {direction}, 0\n" for row in range(rows))
        path = names[test].with_name(f"{pattern}-iodepth-{depth}-numjobs-1_{kind}.{of_job}.log")
        path.write_text(text)
        total += len(text)
    return total


def _imported(folder: Path, files: int) -> tuple[Cost, int]:
    """The cost of the command, and its results. Raises RuntimeError if a file was left out."""
    pattern = "{host}/{drive}/*"
    command = [sys.executable, "manage.py", "import_results", str(folder), "--label", pattern, "--json"]
    with step(f"importing {files:,} files"):
        done, cost = _run(command)
    outcome = json.loads(done)
    if outcome["files_refused"] or outcome["files_read"] != files:
        raise RuntimeError(f"Files were left out: {done[:1000]}")
    return cost, outcome["results_made"]


def _run(command: Sequence[str]) -> tuple[str, Cost]:
    """The output of a command, and its cost."""
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{command[:3]} ended with status {process.returncode}.")
        output.seek(0)
        cost = Cost(time.monotonic() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
        return output.read(), cost


def _ratio(options: argparse.Namespace, folder: Path, files: str, cost: Cost, name: str) -> list[Figure]:
    """How many times as long fio-plot's reader takes, which stores nothing."""
    if not options.fio_plot:
        return []
    with step(f"reading {files} with fio-plot"):
        _, read = _run([options.fio_plot, "-c", YARDSTICK, str(folder), files])
    return [
        figure(name, "×", [read.elapsed_s / cost.elapsed_s], "", met=True),
        figure(f"{name}, CPU time", "×", [read.cpu_s / cost.cpu_s], "", met=True),
    ]


if __name__ == "__main__":
    run_command(main)
