"""Jobs of fio and fio itself."""

import subprocess
from pathlib import Path
from typing import Any

import msgspec

from worker.contract.workload import (
    MIB,
    FioWorkload,
    Pattern,
    Stream,
    TargetKind,
    TargetRef,
)


def stream(kind: TargetKind = TargetKind.DIRECTORY, path: str = "/data", **workload: Any) -> Stream:
    given: dict[str, Any] = {"pattern": Pattern.RANDREAD, "size_bytes": MIB, "runtime_s": 1} | workload
    return Stream(
        number=0,
        target=TargetRef(id="t", kind=kind, path=path, stable_id="s"),
        workload=FioWorkload(**given),
    )


def options(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines()[1:])


def run_fio(text: str, cwd: Path) -> Any:
    command = ("fio", "--output-format=json+", "--eta=never", "-")
    done = subprocess.run(command, input=text, cwd=cwd, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout[done.stdout.index("{") :])["jobs"][0]
