"""The threads of linear algebra in the server's processes."""

import os
import subprocess
import sys


def test_linear_algebra_runs_in_one_thread() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    program = "import os, webapp, numpy; print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1
