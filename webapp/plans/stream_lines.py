"""The streams of a part as text, one per line: `reader: pattern=randread; iodepth=1, 32`."""

from collections.abc import Iterable

from webapp.plans.document import PartStream
from webapp.plans.factors import by_cost


class StreamRefused(ValueError):
    """Invalid text of a stream; the message says what is valid."""


def lines_of(streams: Iterable[PartStream]) -> str:
    return "\n".join(
        f"{stream.name}: {'; '.join(f'{name}={stream.factors[name]}' for name in by_cost(stream.factors))}"
        for stream in streams
    )


def streams_of(text: str) -> list[dict[str, object]]:
    """The streams as JSON of `PartStream`. Raises StreamRefused."""
    return [_stream(line.strip()) for line in text.splitlines() if line.strip()]


def _stream(line: str) -> dict[str, object]:
    name, colon, rest = line.partition(":")
    if not colon:
        raise StreamRefused(f"`{line}` is not a stream; write it like `reader: pattern=randread; iodepth=1, 32`.")
    factors = {}
    for text in filter(str.strip, rest.split(";")):
        factor, equals, levels = (piece.strip() for piece in text.partition("="))
        if not equals or not factor or not levels:
            raise StreamRefused(f"`{text.strip()}` is not a factor with levels; write it like `iodepth=1, 32`.")
        if factor in factors:
            raise StreamRefused(f"The stream {name.strip()} has `{factor}` twice. Remove one of them.")
        factors[factor] = levels
    return {"name": name.strip(), "factors": factors}
