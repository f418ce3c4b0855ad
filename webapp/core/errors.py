"""Errors caused by the user, which are shown as they are. Any other exception is our bug."""


class Refusal(Exception):
    """`code` is for machines, the text says what is wrong, where, and what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NotFound(Refusal):
    """The path, a parameter or the body names an object that does not exist. The API answers 404."""
