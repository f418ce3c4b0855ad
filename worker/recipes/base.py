"""The interface of an engine's recipe."""

from typing import Any, Protocol

import msgspec

from worker.contract.items import Metric
from worker.contract.workload import Stream, TargetKind


class RecipeError(ValueError):
    """The stream cannot run. `code` is for programs, the message for people."""

    code = "option_refused"


class Recipe(msgspec.Struct, frozen=True):
    """`job_text` goes to the standard input of `command`, which runs in the directory that holds `files`."""

    job_text: str
    command: tuple[str, ...]
    files: tuple[str, ...]  # relative file names in a directory target; () for other kinds


class EngineRecipe(Protocol):
    """A module or package of `recipes`, one for each engine."""

    @property
    def LABEL(self) -> str:  # noqa: N802 - a constant of a module
        """The engine's label on pages and in messages."""
        ...

    @property
    def METRICS(self) -> tuple[Metric, ...]:  # noqa: N802
        """Metrics of the engine besides I/Os, bytes and latencies. Names and labels are unique across engines."""
        ...

    @property
    def DEFAULT_METRIC(self) -> str:  # noqa: N802
        """The metric shown unless another is chosen: a name of `METRICS`, `iops` or `bytes_per_s`."""
        ...

    @property
    def INSTALLATION(self) -> str:  # noqa: N802
        """What to install on a host without the engine, as a sentence; "" if it is part of the worker."""
        ...

    def problems(self, workload: Any, kind: TargetKind) -> tuple[str, ...]:  # a recipe's own kind
        """All reasons why the workload cannot run on a target of this kind, as clauses; () if it can."""
        ...

    def feature_words(self, feature: str) -> str:
        """Describe one of `Workload.features`."""
        ...

    def render(self, stream: Stream) -> Recipe:
        """The measured job."""
        ...
