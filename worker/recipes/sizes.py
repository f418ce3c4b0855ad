"""Sizes as people read them."""

_UNITS = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def size_words(size_bytes: int) -> str:
    """`192 KiB`: never rounded, in the largest binary unit that gives a whole number. Plans accept it as a level."""
    for unit_bytes, name in _UNITS:
        if size_bytes and size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes} {name}"
    return f"{size_bytes} B"
