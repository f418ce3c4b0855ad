"""msgspec examines a type when it is first used, without a lock: two threads that do so at the same time crash Python.

The second thread finds what the first has only begun to fill in (msgspec 0.22, `StructInfo_Convert`), and the process
ends with SIGSEGV. So a process with threads examines all its types before it starts them.
"""

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def examine_types() -> int:
    """Examine all structs of the modules loaded so far; the number of structs. Call before threads start."""
    kinds = set(_subclasses(msgspec.Struct))
    for kind in kinds:
        with suppress(TypeError):  # it has a field that msgspec cannot decode, so nothing decodes it
            msgspec.json.Decoder(kind)
    return len(kinds)


def _subclasses(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for found in kind.__subclasses__():
        yield found
        yield from _subclasses(found)
