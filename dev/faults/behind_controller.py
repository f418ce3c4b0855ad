"""Starts the worker of a host whose drive looks as if it were behind a RAID controller.

python -P behind_controller.py SYS ARGUMENT…      SYS: a folder like /sys, for the settings of the controller only
"""

import sys
from pathlib import Path

from worker.cli import main
from worker.controllers import base
from worker.settings.controller_policies import DRIVES

if __name__ == "__main__":
    DRIVES.sys = Path(sys.argv[1])
    base.ANSWER_LIMIT_S = 5.0
    sys.exit(main(sys.argv[2:]))
