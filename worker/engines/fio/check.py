"""The checks of fio and io_uring for `sweetspot-worker doctor`."""

from collections.abc import Iterator

from worker.checks import Check, State
from worker.contract.workload import IoEngine
from worker.engines.fio.probe import offer


def check() -> Iterator[Check]:
    found = offer()
    if found is None:
        advice = "Install it: apt install fio. Prefill needs it for every engine."
        yield Check("fio", State.BROKEN, "fio was not found on the PATH.", advice)
        return
    yield Check("fio", State.OK, f"{found.version}; supports: {', '.join(found.features) or 'nothing'}")
    if IoEngine.IO_URING in found.features:
        yield Check("io_uring", State.OK, "works")
        return
    advice = "See “sysctl kernel.io_uring_disabled”; in a container, its seccomp profile must allow io_uring."
    yield Check("io_uring", State.BROKEN, "does not work on this host.", advice)
