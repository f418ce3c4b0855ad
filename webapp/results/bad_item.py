"""What a host says and cannot be."""


class BadItem(Exception):
    """An item that is well formed and yet cannot be true; its text says which and why."""
