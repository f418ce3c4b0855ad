"""Replaces fio, so that a trial of many hours takes minutes. Runs as a separate program.

    python fake_fio.py FIO ARGUMENT…      with the job text on standard input

For a job of ten minutes or more, run the real fio for 2 s. Then print its last dump once for every second of the job
without waiting, with growing counters and histograms. Pass any other job to fio unchanged.
"""

import json
import os
import re
import subprocess
import sys

LONG_S = 600
DIRECTIONS = ("read", "write", "trim")
GROWS = ("io_bytes", "io_kbytes", "total_ios", "runtime")


def main(fio: str, arguments: list[str]) -> int:
    job = sys.stdin.read() if "-" in arguments else ""
    found = re.search(r"^runtime=(\d+)", job, re.MULTILINE)
    if not found or int(found.group(1)) < LONG_S:
        replace_stdin(job)
        os.execv(fio, [fio, *arguments])  # noqa: S606
    short = re.sub(r"^runtime=\d+.*$", "runtime=2", job, flags=re.MULTILINE)
    done = subprocess.run([fio, *arguments], input=short, capture_output=True, text=True, check=True)
    dump = last_dump(done.stdout)
    for second in range(1, int(found.group(1)) + 1):
        sys.stdout.write(json.dumps(at_second(dump, second), indent=1) + "\n")
        sys.stdout.flush()
    return 0


def replace_stdin(job: str) -> None:
    """Replace standard input by a file with the job: a pipe cannot be read twice."""
    copy = os.memfd_create("job")
    os.write(copy, job.encode())
    os.lseek(copy, 0, os.SEEK_SET)
    os.dup2(copy, 0)


def last_dump(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    decoder, at = json.JSONDecoder(), text.index("{")
    while at < len(text):
        found, at = decoder.raw_decode(text, at)
        while at < len(text) and text[at].isspace():
            at += 1
    return found


def at_second(dump: dict[str, object], second: int) -> dict[str, object]:
    jobs = []
    for job in dump["jobs"]:  # type: ignore[attr-defined]
        grown = dict(job, job_runtime=second * 1000)
        for name in DIRECTIONS:
            if job.get(name, {}).get("total_ios"):
                grown[name] = grow(job[name], second)
        jobs.append(grown)
    return dict(dump, jobs=jobs)


def grow(direction: dict[str, object], second: int) -> dict[str, object]:
    """Scale the counters of 2 s to `second` seconds."""
    grown = dict(direction)
    for name in GROWS:
        if name in grown:
            grown[name] = int(direction[name]) // 2 * second  # type: ignore[call-overload]
    grown["runtime"] = 1000 * second
    for name in ("lat_ns", "clat_ns", "slat_ns"):
        if direction.get(name, {}).get("N"):  # type: ignore[attr-defined]
            grown[name] = grow_latency(direction[name], second)  # type: ignore[arg-type]
    grown["total_ios"] = grown["lat_ns"]["N"] if grown.get("lat_ns", {}).get("N") else grown["total_ios"]  # type: ignore[attr-defined,index]
    return grown


def grow_latency(latency: dict[str, object], second: int) -> dict[str, object]:
    grown = dict(latency)
    if "bins" in latency:
        grown["bins"] = {name: count * second for name, count in latency["bins"].items()}  # type: ignore[attr-defined]
        grown["N"] = sum(grown["bins"].values())  # type: ignore[attr-defined]
    else:
        grown["N"] = int(latency["N"]) * second  # type: ignore[call-overload]
    return grown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
