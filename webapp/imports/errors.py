"""The error of parsers and of reading files."""

from webapp.core.errors import Refusal


class ImportRefused(Refusal):
    """A file that cannot be imported. `reason` is a sentence: what is wrong, where, and what to do. Reports count files
    by it, so what differs between files with the same reason is a sentence of its own, `detail`."""

    def __init__(self, reason: str, detail: str = "", *, code: str = "import_refused") -> None:
        super().__init__(code, reason)
        self.detail = detail

    @property
    def details(self) -> tuple[str, ...]:
        return (self.detail,) if self.detail else ()


class ArchiveDamaged(ImportRefused):
    """Nothing after this place of an archive can be read."""
