"""The error of an item that cannot be true."""


class BadItem(Exception):
    """An item that is well formed and yet cannot be true; the text says which item and why."""
