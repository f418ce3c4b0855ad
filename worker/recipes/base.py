"""What every engine's recipe offers."""

from typing import Any, Protocol

import msgspec

from worker.contract.items import Metric
from worker.contract.workload import Stream, TargetKind


class RecipeError(ValueError):
    """The stream cannot be run as it is. `code` is for machines, the text for people."""

    code = "option_refused"


class Recipe(msgspec.Struct, frozen=True):
    """`job_text` goes to the standard input of `command`, which runs in the directory that holds `files`."""

    job_text: str
    command: tuple[str, ...]
    files: tuple[str, ...]  # relative names that a directory target needs; () for other kinds


class EngineRecipe(Protocol):
    """A module or package of `recipes`, one for each engine."""

    @property
    def LABEL(self) -> str:  # noqa: N802 - a constant of a module
        """The engine's name on screen."""
        ...

    @property
    def METRICS(self) -> tuple[Metric, ...]:  # noqa: N802
        """What the engine measures besides I/Os, bytes and latencies; names and labels are unique over all engines."""
        ...

    def problems(self, workload: Any, kind: TargetKind) -> tuple[str, ...]:  # its own workload
        """Everything that keeps the workload from running on a target of this kind, each a clause; () if nothing."""
        ...

    def feature_words(self, feature: str) -> str:
        """One of `Workload.features`, for a person."""
        ...

    def render(self, stream: Stream) -> Recipe:
        """The measured job."""
        ...
