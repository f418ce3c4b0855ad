"""The error for an implausible item."""


class BadItem(Exception):
    """An item is well formed but implausible; the text says which item and why."""
