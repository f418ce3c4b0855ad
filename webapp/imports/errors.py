"""The error of parsers and of reading files."""

from webapp.core.errors import Refusal


class ImportRefused(Refusal):
    """A file that cannot be imported. `reason` is a sentence: what is wrong, where, and what to do."""

    def __init__(self, reason: str) -> None:
        super().__init__("import_refused", reason)
