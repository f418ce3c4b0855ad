"""A worker that is killed after it wrote a setting, before it reads it back.

VALUE=… python -m worker.tests.lab.killed_worker SETTING DEVICE STATE POLICY
"""

import os
import signal
import sys
from pathlib import Path

from worker import policy
from worker.contract.orders import SettingRequest
from worker.journal import Journal
from worker.kernel.targets import OpenTarget
from worker.settings import REGISTRY, SETTING_NAMES, session
from worker.settings.base import Setting

TARGET = "LABSAM0003"


def die_after_writing(setting: Setting) -> None:
    apply = type(setting).apply

    def apply_and_die(self: Setting, subject: str, value: str) -> None:
        apply(self, subject, value)
        os.kill(os.getpid(), signal.SIGKILL)

    type(setting).apply = apply_and_die  # type: ignore[method-assign]


def main(name: str, device: str, state: str, policy_path: str) -> None:
    die_after_writing(REGISTRY[name])
    session.apply_settings(
        [SettingRequest(name=name, value=os.environ["VALUE"], stream=0)],
        "r1",
        {0: OpenTarget(path=f"/dev/{device}", device=device, target=TARGET)},
        policy.load(Path(policy_path), SETTING_NAMES),
        Journal(Path(state) / "journal.db"),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
