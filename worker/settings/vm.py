"""How much written data the kernel keeps in memory (Documentation/admin-guide/sysctl/vm.rst), and huge pages.

Each limit on dirty memory is one state with two faces: a share of memory and an amount. Setting
one makes the other 0, so both are kept together, and only one of them can be wished for.
"""

from pathlib import Path

from worker.inventory.devices import parse_choice
from worker.settings.base import SettingScope, refused
from worker.settings.files import read_file, write_file
from worker.settings.kernel_file import KernelFile

PROC_VM = Path("/proc/sys/vm")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")


class VmFile(KernelFile):
    scope = SettingScope.HOST

    def path(self, subject: str) -> Path:
        return PROC_VM / self.name.removeprefix("vm.")


class DirtyLimit(VmFile):
    """`vm.dirty_ratio` or `vm.dirty_bytes`; a state is `dirty_ratio=20`."""

    def __init__(self, name: str, other: str, description: str) -> None:
        super().__init__(f"vm.{name}", description)
        self._faces = (name, other)

    @property
    def key(self) -> str:
        return f"vm.{self._share}"

    def capture(self, subject: str) -> str:
        """The face that is in force; a share of 0 is one where both are 0."""
        values = {face: read_file(PROC_VM / face, face) for face in self._faces}
        in_force = next((face for face, value in values.items() if value != "0"), self._share)
        return f"{in_force}={values[in_force]}"

    def apply(self, subject: str, value: str) -> None:
        if value == "0" and self._faces[0] != self._share:
            raise refused(f"{self.name} cannot be 0, which would mean that the other of the two is in force: set that.")
        super().apply(subject, value)

    def restore(self, subject: str, state: str) -> None:
        face, _, value = state.partition("=")
        if value == "0":  # the kernel takes a share of 0 as a change, and the amount out of force, only from another
            write_file(PROC_VM / face, "1", f"vm.{face}")
        write_file(PROC_VM / face, value, f"vm.{face}")

    @property
    def _share(self) -> str:
        return next(face for face in self._faces if face.endswith("_ratio"))


class HugePages(KernelFile):
    """`always [madvise] never`."""

    scope = SettingScope.HOST

    def path(self, subject: str) -> Path:
        return HUGE_PAGES / "enabled"

    def read(self, subject: str) -> str:
        return parse_choice(super().read(subject))[0]

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        return asked == observed


VM_SETTINGS = (
    DirtyLimit("dirty_ratio", "dirty_bytes", "share of memory that may be dirty before writers must write, %"),
    DirtyLimit("dirty_bytes", "dirty_ratio", "amount of memory that may be dirty before writers must write, bytes"),
    DirtyLimit("dirty_background_ratio", "dirty_background_bytes", "share of dirty memory at which writing begins, %"),
    DirtyLimit(
        "dirty_background_bytes", "dirty_background_ratio", "amount of dirty memory at which writing begins, bytes"
    ),
    VmFile("vm.dirty_expire_centisecs", "age at which dirty data is written, 1/100 s"),
    VmFile("vm.dirty_writeback_centisecs", "how often the kernel looks for such data, 1/100 s; 0 never"),
)
TRANSPARENT_HUGEPAGE = HugePages(
    "transparent_hugepage", "large pages for memory that programs ask for", choices=("always", "madvise", "never")
)
