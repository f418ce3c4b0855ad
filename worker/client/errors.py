"""Exit codes, and errors that end the command with one of them."""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1  # the plan has problems or cannot run, the run failed, or the candidate is worse
    USAGE = 2  # of the command line or the configuration; the number that argparse uses
    UNREACHABLE = 3
    REFUSED = 4  # by the server
    CANNOT_TELL = 5
    TIMED_OUT = 6
    SERVER_FAILED = 7
    CONTACT_LOST = 8
    INTERRUPTED = 130  # as of a program that SIGINT ended


class ClientError(Exception):
    """`str()` says what is wrong and what to do. It never contains the token."""

    exit_code = ExitCode.FAILED


class UsageError(ClientError):
    exit_code = ExitCode.USAGE


class Unreachable(ClientError):
    exit_code = ExitCode.UNREACHABLE


class ServerFailed(ClientError):
    """An error of the server that a later try may not meet, for example while its database restarts."""

    exit_code = ExitCode.SERVER_FAILED


class Refused(ClientError):
    """The server's {code, message}."""

    exit_code = ExitCode.REFUSED

    def __init__(self, message: str, *, status: int, code: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class TimedOut(ClientError):
    exit_code = ExitCode.TIMED_OUT


class ContactLost(ClientError):
    """The server gave no useful answer for a long time; the run continues."""

    exit_code = ExitCode.CONTACT_LOST


class Interrupted(ClientError):
    """Ctrl-C or SIGTERM while the server continues."""

    exit_code = ExitCode.INTERRUPTED
