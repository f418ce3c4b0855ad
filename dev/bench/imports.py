"""`make bench-import`: time and memory of `manage.py import_results` on a large collection of fio's files.

The collection is made from the examples of the formats: JSON files with other numbers, and logs with a row a second. As
a yardstick, fio-plot's reader of the same files, if `--fio-plot` names the Python of an environment that has it.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from dev.bench.figures import Figure, figure, show
from dev.console import run_command, say, step
from dev.stack import lifecycle, services
from dev.stack.state import default_state

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "webapp/imports/formats/tests/data/fio-json/3.33-group.json"
JSON_WANTED_S, ALL_WANTED_S, MEMORY_WANTED_MIB = 15, 180, 300
KINDS = ("bw", "iops", "lat", "clat")
DEPTHS, PATTERNS = (1, 2, 4, 8, 16, 32, 64), ("randread", "randwrite", "read", "write")
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


def main(arguments: Sequence[str]) -> int:
    """Make the files, import the JSON files alone and then everything; 1 if a figure misses its limit."""
    options = _options(arguments)
    state = default_state(f"import-{os.getpid()}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        try:
            state.prepare()
            lifecycle.start_stores(state, durable=False)
            os.environ.update(services.environment(state))
            subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity=0"], cwd=ROOT, check=True)
            figures = _measure(Path(folder), options)
        finally:
            with step("removing the bench's processes and data"):
                lifecycle.remove(state)
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
        names = _make_json(folder / "json", options.json_files)
    seconds, memory = _imported(folder / "json", options.json_files)
    figures.append(figure("JSON files", "s", [seconds], f"< {JSON_WANTED_S}", met=seconds < JSON_WANTED_S))
    figures += _ratio(options, folder / "json", "*.json", seconds, "JSON: fio-plot's reader / import")
    with step(f"making {options.logs:,} logs of {options.rows:,} rows beside other JSON files"):
        shutil.rmtree(folder / "json")
        names = _make_json(folder / "all", options.json_files, seed=2)
        size = _make_logs(names, options.logs, options.rows)
    say(f"    {size / 1e6:,.0f} MB of logs, {options.logs * options.rows / 1e6:.1f} M rows")
    seconds, more = _imported(folder / "all", options.json_files + options.logs)
    memory = max(memory, more)
    figures.append(figure("JSON files and logs", "s", [seconds], f"< {ALL_WANTED_S}", met=seconds < ALL_WANTED_S))
    figures += _ratio(options, folder / "all", "*.log", seconds, "logs: fio-plot's reader / whole import")
    wanted, met = f"< {MEMORY_WANTED_MIB}", memory < MEMORY_WANTED_MIB
    figures.append(figure("peak memory", "MiB", [memory], wanted, met=met))
    return figures


def _make_json(folder: Path, count: int, seed: int = 1) -> list[Path]:
    """The paths without `.json`. Each file is a test of its own: another drive, pattern or depth."""
    chance = random.Random(seed)  # noqa: S311 - the same numbers each time
    document = json.loads(EXAMPLE.read_text())
    job = document["jobs"][0]
    names = []
    for number in range(count):
        drive, rest = divmod(number, len(DEPTHS) * len(PATTERNS))
        depth, pattern = DEPTHS[rest % len(DEPTHS)], PATTERNS[rest // len(DEPTHS)]
        document["timestamp"] = 1_600_000_000 + seed * 10_000_000 + number
        document["global options"] = {"rw": pattern, "iodepth": str(depth), "numjobs": "1", "bs": "4k"}
        job["job options"] = {"rw": pattern, "iodepth": str(depth), "numjobs": "1", "bs": "4k"}
        job["read"]["total_ios"] = chance.randrange(10**5, 10**7)
        name = folder / f"host{drive % 7}/drive{drive}" / f"{pattern}-{depth}-1"
        name.parent.mkdir(parents=True, exist_ok=True)
        name.with_name(f"{name.name}.json").write_text(json.dumps(document, indent=1))
        names.append(name)
    return names


def _make_logs(names: Sequence[Path], count: int, rows: int) -> int:
    """Logs of the tests, in turn over kinds and jobs; their bytes."""
    chance = random.Random(3)  # noqa: S311 - the same numbers each time
    total = 0
    for number in range(count):
        job, test = divmod(number, len(names))
        pattern, depth, _ = names[test].name.rsplit("-", 2)
        kind, of_job = KINDS[job % len(KINDS)], job // len(KINDS) + 1
        direction = 0 if "read" in pattern else 1
        level = chance.randrange(100, 200_000)
        text = "".join(f"{1000 * (row + 1)}, {level + row % 97}, {direction}, 0\n" for row in range(rows))
        path = names[test].with_name(f"{pattern}-iodepth-{depth}-numjobs-1_{kind}.{of_job}.log")
        path.write_text(text)
        total += len(text)
    return total


def _imported(folder: Path, files: int) -> tuple[float, float]:
    """Seconds, and the peak of the command's memory in MiB. Raises RuntimeError if a file was left out."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    pattern = "{host}/{drive}/*"
    command = [sys.executable, "manage.py", "import_results", str(folder), "--label", pattern, "--json"]
    started = time.monotonic()
    with step(f"importing {files:,} files"):
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    seconds = time.monotonic() - started
    outcome = json.loads(done.stdout)
    if outcome["files_refused"] or outcome["files_read"] != files:
        raise RuntimeError(f"Files were left out: {done.stdout[:1000]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return seconds, max(before, after) / 1024


def _ratio(options: argparse.Namespace, folder: Path, files: str, seconds: float, name: str) -> list[Figure]:
    """How many times as long fio-plot's reader takes, which stores nothing."""
    if not options.fio_plot:
        return []
    started = time.monotonic()
    with step(f"reading {files} with fio-plot"):
        subprocess.run([options.fio_plot, "-c", YARDSTICK, str(folder), files], check=True, capture_output=True)
    return [figure(name, "×", [(time.monotonic() - started) / seconds], "", met=True)]


if __name__ == "__main__":
    run_command(main)
