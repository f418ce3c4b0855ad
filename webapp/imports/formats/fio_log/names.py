"""What the name of a fio log says: `<prefix>_<kind>.<job>.log`, with `per_job_logs=0` without the job."""

import re
from enum import StrEnum
from pathlib import PurePosixPath

import msgspec


class Kind(StrEnum):
    BANDWIDTH = "bw"
    IOPS = "iops"
    LATENCY = "lat"
    COMPLETION = "clat"
    SUBMISSION = "slat"
    HISTOGRAM = "clat_hist"


class LogName(msgspec.Struct, frozen=True):
    """Logs with the same folder and prefix are of one trial."""

    folder: str
    prefix: str
    kind: Kind
    job: int  # from 1; 0 if the name has none

    @property
    def trial(self) -> str:
        return f"{self.folder}/{self.prefix}"


_NAME = re.compile(r"(.{0,400})_(bw|iops|lat|clat|slat|clat_hist)(?:\.(\d{1,6}))?\.log(?:\.[\w.-]{1,100})?")


def log_name(path: str) -> LogName | None:
    """None if the path is not that of a fio log. A client's host may follow: `a_bw.1.log.host7`."""
    file = PurePosixPath(path)
    match = _NAME.fullmatch(file.name)
    if match is None:
        return None
    kind = Kind.HISTOGRAM if match[2] == "hist" else Kind(match[2])
    return LogName(str(file.parent), match[1], kind, int(match[3] or 0))
