import subprocess
import sys
from pathlib import Path

import worker

THREADS = 16
DECODE_IN_THREADS = f"""
import sys, threading
import msgspec
from worker.contract.orders import AnyOrder
from worker.contract.reports import Report
from worker.contract.base import examine_types

if "examined" in sys.argv:
    assert examine_types() > 50
body = b'{{"version": 2, "batches": [], "active": []}}'
begin = threading.Barrier({THREADS})
sys.setswitchinterval(1e-6)

def decode():
    begin.wait()
    msgspec.json.decode(body, type=Report)

threads = [threading.Thread(target=decode) for _ in range({THREADS})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def _end(*arguments: str) -> int:
    command = (sys.executable, "-c", DECODE_IN_THREADS, *arguments)
    return subprocess.run(command, cwd=Path(worker.__file__).parents[1], capture_output=True, check=False).returncode


def test_threads_that_decode_their_first_message_at_the_same_time_do_not_crash_the_process() -> None:
    assert [_end("examined") for _ in range(5)] == [0] * 5
