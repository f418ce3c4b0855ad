"""The engines that plans can use, by their names in the contract."""

from collections.abc import Mapping
from typing import Protocol

from webapp.plans.engines import file_copy, fio
from webapp.plans.factor import Factor
from webapp.plans.values import Value
from worker.contract.workload import AnyWorkload

ENGINE = "engine"  # the factor that names it
DEFAULT_ENGINE = "fio"


class PlanEngine(Protocol):
    """A module of this package."""

    @property
    def LABEL(self) -> str: ...  # noqa: N802 - constants of a module

    @property
    def REQUIRED(self) -> tuple[str, str]: ...  # noqa: N802 - the factor that a part must name, and an example

    @property
    def FACTORS(self) -> tuple[Factor, ...]: ...  # noqa: N802 - of the workload and its processes

    def silent(self, point: Mapping[str, Value]) -> tuple[str, ...]:
        """Factors that have no effect at this point, so the point does not contain them."""
        ...

    def workload(self, point: Mapping[str, Value], *, seed: int) -> AnyWorkload:
        """Raises msgspec.ValidationError if the contract does not allow it."""
        ...


ENGINES: Mapping[str, PlanEngine] = {"fio": fio, "file_copy": file_copy}


def engine_of(point: Mapping[str, object]) -> PlanEngine:
    return ENGINES[str(point.get(ENGINE, DEFAULT_ENGINE))]
