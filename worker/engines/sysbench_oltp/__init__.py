"""The engine sysbench OLTP: sysbench's transactions on a temporary PostgreSQL cluster, which pgbench's program runs."""

import re
import time
from collections.abc import Iterator

from worker.contract.inventory import EngineOffer
from worker.contract.items import Direction, StreamResult
from worker.contract.sysbench_oltp import OltpWorkload
from worker.engines import pgbench
from worker.engines.base import Check, State, StreamFailed
from worker.engines.running import Running
from worker.engines.sysbench import following
from worker.engines.sysbench.reports import Seconds
from worker.recipes.sysbench_oltp import INSTALLATION, METRICS

_TPS = re.compile(r" tps: ([0-9.]+) ")
_TRANSACTIONS = r"^ *transactions: *([0-9]+) "
_ERRORS = r"^ *ignored errors: *([0-9]+) "


def _transactions_of(text: str) -> float | None:
    match = _TPS.search(text)
    return float(match[1]) if match else None


def run_stream(running: Running) -> StreamResult:
    """As `engines.Engine` says. Samples have no latencies, because sysbench prints them only at its end."""
    work = running.stream.workload
    assert isinstance(work, OltpWorkload)
    recipe = running.recipe()
    pgbench.give_folder(running.stream, running.target)
    running.report_start(time.time(), recipe, command=pgbench.COMMAND, metrics=METRICS)
    sampler = running.sampler()
    seconds = Seconds(sampler, Direction.TRANSACTION, _transactions_of)
    measured = following.measure(
        running, recipe, sampler, seconds.take, command=pgbench.COMMAND, grace_s=pgbench.STOP_GRACE_S
    )
    count = int(measured.number(_TRANSACTIONS))
    if not count:
        raise StreamFailed("sysbench_error", f"sysbench completed no transaction in {work.runtime_s} s.")
    whole = seconds.finish(measured, count)
    metrics = {
        "oltp_tps": 1000 * count / measured.runtime_ms,
        "oltp_load_s": measured.end.load_ms / 1000,
        "oltp_errors": measured.number(_ERRORS),
    }
    return following.stream_result(
        running, sampler, measured, directions=(whole,), metrics=metrics, engine_version=version()
    )


def version() -> str:
    return f"{following.version()}, {pgbench.version()}"


def offer() -> EngineOffer | None:
    """It needs both programs."""
    return EngineOffer(version=version(), features=()) if pgbench.offer() and following.offer() else None


def installation() -> str:
    return f"{following.installation()}; {pgbench.installation()}"


def check() -> Iterator[Check]:
    offered = offer()
    if offered:
        yield Check("sysbench OLTP", State.OK, offered.version)
    else:
        yield Check("sysbench OLTP", State.NOTE, "sysbench or PostgreSQL was not found.", INSTALLATION)
