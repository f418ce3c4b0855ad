"""The error of a damaged data file."""


class ReferenceDamaged(Exception):
    """A data file of a reference is damaged: our mistake, not a user's. The message names the file and the line."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}, line {line}: {reason}")
