"""Known errors of particular fio versions."""

import re

from worker.contract.workload import FioWorkload, IoEngine


def version_of(text: str) -> tuple[int, int]:
    """(3, 33) for `fio-3.33` or `fio-3.36-12-gabcd`; (0, 0) for an unknown format."""
    match = re.search(r"([0-9]+)\.([0-9]+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def completion_latency_problem(version: str, work: FioWorkload) -> str:
    """Why the completion latency of this fio version is wrong, "" if it is not.

    With sqthread_poll it is the only available latency. It was wrong before 3.34
    (axboe/fio#1484), and at queue depths above 1 before 3.36 (axboe/fio pull 1594).
    """
    if work.ioengine is not IoEngine.IO_URING or not work.uring.sqthread_poll:
        return ""
    needed = (3, 34) if work.iodepth == 1 else (3, 36)
    if version_of(version) >= needed:
        return ""
    return (
        f"{version} reports a wrong completion latency for sqthread_poll at depth {work.iodepth}: "
        f"install fio {needed[0]}.{needed[1]} or newer, or measure without sqthread_poll."
    )
