"""The guard's error, and the result of a survey."""

from worker.contract.base import Failed


class GuardRefused(Failed):
    """The target may not be used this way. The message says what is wrong, where, and what to do."""


class Survey:
    """The state of a policy entry's target."""

    def __init__(
        self, *, device: str = "", size_bytes: int = 0, opens: str = "", problem: str = "", model: str = "",
        firmware: str = "", file_system: str = "", test_file_bytes: int = 0,
    ) -> None:  # fmt: skip
        self.device = device  # kernel name of the whole device
        self.size_bytes = size_bytes  # size of a device or file; of a directory, the space for test files
        self.opens = opens  # device node behind a block device's path; for a slot, its name in the controller's tool
        self.model = model  # of a drive that only its controller can access
        self.firmware = firmware
        self.file_system = file_system  # of a directory: a name that directories of one file system have in common
        self.test_file_bytes = test_file_bytes  # the part of a directory's size that test files take now
        self.problem = problem  # "" if it can be used
