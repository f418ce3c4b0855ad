"""A problem in the text of a part."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GridProblem:
    """`field` is the factor with the problem, `on` for the kinds of target, `rules`, `streams`, or "" for the part as a
    whole. The factor of a stream has the stream's name: `reader.iodepth`. The problems of a part's field `before` have
    the name of that factor."""

    field: str
    message: str
