"""Parts with streams."""

from webapp.plans.document import PartStream


def streams(**given: dict[str, str]) -> tuple[PartStream, ...]:
    return tuple(PartStream(name=name, factors=factors) for name, factors in given.items())
