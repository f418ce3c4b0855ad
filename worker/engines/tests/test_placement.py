"""Where fio runs, looked up at its own processes while it does."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from worker.contract.items import Sample
from worker.contract.workload import CpusPolicy, Placement
from worker.engines.base import StreamFailed
from worker.engines.tests.test_streams import Bench, bench, stream
from worker.process import supervisor
from worker.process.scope import _marker_of

__all__ = ["bench"]


def placed(bench: Bench, **placement: Any) -> set[tuple[str, str, str, str]]:
    """(nice, I/O priority, processors, memory nodes) of fio's jobs, seen with the first sample."""
    seen: set[tuple[str, str, str, str]] = set()
    ours = f"{supervisor.MARK}={_marker_of(bench.state)}".encode()

    def look(_sample: Sample) -> None:
        for pid in (int(entry.name) for entry in Path("/proc").glob("[0-9]*")):
            try:
                is_job = ours in Path(f"/proc/{pid}/environ").read_bytes() and _is_job(pid)
            except OSError:
                continue
            if is_job:
                seen.add(_facts(pid))

    bench.samples = _Calling(look)
    wanted = stream(numjobs=2, placement=Placement(**placement))
    bench.prefill(stream(numjobs=2))
    bench.run(wanted)
    return seen


class _Calling(list[Sample]):
    def __init__(self, look: Any) -> None:
        super().__init__()
        self._look = look

    def append(self, sample: Sample) -> None:
        self._look(sample)


def _is_job(pid: int) -> bool:
    """fio's jobs are children of the fio that was started."""
    name, parent = Path(f"/proc/{pid}/comm").read_text().strip(), _stat(pid)[1]
    return name == "fio" and Path(f"/proc/{parent}/comm").read_text().strip() == "fio"


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _facts(pid: int) -> tuple[str, str, str, str]:
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    priority = subprocess.run(["ionice", "-p", str(pid)], capture_output=True, text=True, check=True).stdout.strip()
    return _stat(pid)[16], priority, status["Cpus_allowed_list"], status["Mems_allowed_list"]


def test_it_runs_where_and_as_it_is_told(bench: Bench) -> None:
    found = placed(bench, nice=7, ionice="be/6", cpus="0", cpus_policy=CpusPolicy.SHARED)
    assert {facts[:3] for facts in found} == {(str(min(19, os.nice(0) + 7)), "best-effort: prio 6", "0")}


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two processors")
def test_it_shares_processors_out_one_a_job(bench: Bench) -> None:
    found = placed(bench, ionice="idle", cpus="0-1", cpus_policy=CpusPolicy.SPLIT)
    assert {(facts[1], facts[2]) for facts in found} == {("idle", "0"), ("idle", "1")}


@pytest.mark.skipif(not Path("/sys/devices/system/node/node0").exists(), reason="needs a kernel that knows NUMA nodes")
def test_it_keeps_to_a_numa_node(bench: Bench) -> None:
    cpus = Path("/sys/devices/system/node/node0/cpulist").read_text().strip()
    assert {facts[2] for facts in placed(bench, numa_node=0)} == {cpus}


@pytest.mark.parametrize(
    ("placement", "words"), [({"cpus": "4095"}, "failed parsing cpus_allowed"), ({"numa_node": 1023}, "numa")]
)
def test_it_gives_fios_reason_where_it_cannot_run(bench: Bench, placement: dict[str, Any], words: str) -> None:
    bench.prefill(stream())
    with pytest.raises(StreamFailed, match=words):
        bench.run(stream(placement=Placement(**placement)))
