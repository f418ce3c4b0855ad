"""The content of a device, and whether it belongs to a layout of the worker."""

import os

import msgspec

from worker.layouts.steps import LayoutFailed
from worker.process import ToolError, ask
from worker.recipes.layouts import Names

NOTHING_FOUND = 2  # blkid's exit status
READ_LIMIT_S = 60.0  # a busy drive may take long to answer
FILE_SYSTEMS = ("xfs", "ext4", "btrfs", "jfs", "f2fs")


class Content(msgspec.Struct, frozen=True):
    """The content of a device according to blkid(8); "" for nothing."""

    kind: str = ""  # a file system, linux_raid_member, LVM2_member …
    label: str = ""
    table: str = ""  # kind of partition table
    table_id: str = ""

    @property
    def blank(self) -> bool:
        return not self.kind and not self.table

    def __str__(self) -> str:
        name = self.kind or f"a partition table ({self.table})"
        return f"{name} {self.label}".strip()


def read_content(path: str) -> Content:
    """Raises LayoutFailed if blkid fails."""
    try:
        said = ask("blkid", "--probe", "--output", "export", path, limit_s=READ_LIMIT_S)
    except ToolError as error:
        raise LayoutFailed("layout_tool_missing", str(error)) from error
    if said.exit_code == NOTHING_FOUND:
        return Content()
    if said.exit_code != 0:
        raise LayoutFailed("layout_foreign", f"The content of {path} is unknown: blkid ended with {said.exit_code}.")
    found = dict(line.partition("=")[::2] for line in said.out.splitlines())
    return Content(
        found.get("TYPE", ""), found.get("LABEL", ""), found.get("PTTYPE", ""), found.get("PTUUID", "").lower()
    )


def belongs_to_layout(content: Content, names: Names, path: str) -> bool:
    """Also true for a blank device, because a killed worker may not have written it yet."""
    if content.kind == "linux_raid_member":
        return content.label.rpartition(":")[2].startswith(f"sweetspot-{names.key}-")
    if content.kind == "LVM2_member":
        return _group_of(path) in ("", names.group)
    if content.kind:
        return content.kind in FILE_SYSTEMS and content.label == names.label
    return not content.table or content.table_id == names.table_id


def _group_of(path: str) -> str:
    """The volume group of a physical volume; "" if it is in none."""
    try:
        said = ask("pvs", "--noheadings", "--options", "vg_name", os.path.realpath(path))
    except ToolError as error:
        raise LayoutFailed("layout_tool_missing", str(error)) from error
    if said.exit_code != 0:
        raise LayoutFailed("layout_foreign", f"The volume group of {path} could not be read: {said.err.strip()}")
    return said.out.strip()
