"""Settings that consist of one file under /sys/block/<device>, most of them in its queue directory."""

from pathlib import Path

from worker.inventory import sysfs
from worker.settings.base import SettingScope
from worker.settings.kernel_file import KernelFile


class QueueFile(KernelFile):
    """`file`: the file's name, if it differs from the setting's."""

    scope = SettingScope.DEVICE

    def __init__(  # a file's name and place beside what every kernel file has
        self,
        name: str,
        description: str,
        *,
        file: str = "",
        choices: tuple[str, ...] = (),
        rank: int = 2,
        disturbs: tuple[str, ...] = (),
        by_name_only: bool = False,
        stacked: bool = False,
        sys: Path = sysfs.SYS,
    ) -> None:
        super().__init__(name, description, choices=choices, rank=rank, disturbs=disturbs, by_name_only=by_name_only)
        self.stacked = stacked
        self._file = file or f"queue/{name}"
        self._sys = sys

    def path(self, subject: str) -> Path:
        return sysfs.node(subject, self._sys) / self._file
