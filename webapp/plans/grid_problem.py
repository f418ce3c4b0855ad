"""A problem in the text of a part."""

from dataclasses import dataclass

# Codes of the problems of a plan
TOO_LARGE = "plan_too_large"  # over a limit of levels, combinations, points or trials
PLAN_PROBLEM = "plan_problem"  # all others


@dataclass(frozen=True)
class GridProblem:
    """`field` is the factor with the problem, `on` for the kinds of target, `rules`, `streams`, or "" for the part as a
    whole. The factor of a stream has the stream's name: `reader.iodepth`. The problems of a part's field `before` have
    the name of that factor. `code` is TOO_LARGE, or "" for all other problems."""

    field: str
    message: str
    code: str = ""
