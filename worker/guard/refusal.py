"""The guard's error, and the result of a survey."""

import msgspec

from worker.contract.base import Failed


class GuardRefused(Failed):
    """The target may not be used this way. The message says what is wrong, where, and what to do."""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a policy entry's target."""

    device: str = ""  # kernel name of the whole device
    size_bytes: int = 0  # size of a device or file; of a directory, the space for test files
    opens: str = ""  # device node behind a block device's path; for a slot, its name in the controller's tool
    model: str = ""  # of a drive that only its controller can access
    firmware: str = ""
    file_system: str = ""  # of a directory: a name that directories of one file system have in common
    test_file_bytes: int = 0  # the part of a directory's size that test files take now
    problem: str = ""  # "" if it can be used
