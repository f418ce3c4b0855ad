"""A worker process as far as processes go, to be killed: holds a scope with fio in it, says so, and waits.

python -m worker.process.tests.holder STATE_DIR FILE [KIND …]      KIND: which cgroups it may use
"""

import sys
import time
from pathlib import Path

from worker.process import scope as scopes
from worker.process.scope import open_scope


def main(state: str, file: str, *kinds: str) -> None:
    found = scopes.own_cgroups()
    scopes.own_cgroups = lambda: [(kind, path) for kind, path in found if kind in kinds]
    scope = open_scope(Path(state), "held")
    job = f"[held]\nfilename={file}\nrw=randread\nbs=4k\ndirect=1\nnumjobs=2\nruntime=60s\ntime_based=1\nsize=8m\n"
    command = ("fio", "--output-format=json+", "--status-interval=1", "--eta=never", "-")
    child = scope.spawn(command, stdin_text=job)
    print(scope.isolation, child.supervisor_pid, flush=True)
    while child.read(1.0) != b"":
        pass
    print(child.wait(), flush=True)
    time.sleep(60)  # until the test kills this process


if __name__ == "__main__":
    main(*sys.argv[1:])
