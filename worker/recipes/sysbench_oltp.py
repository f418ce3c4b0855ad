"""The recipe of sysbench OLTP. The program of pgbench runs the server, and sysbench instead of pgbench."""

from collections.abc import Iterator

from worker.contract.items import Metric, Unit
from worker.contract.sysbench_oltp import OltpWorkload
from worker.contract.workload import Stream, TargetKind
from worker.recipes import pgbench, sysbench
from worker.recipes.base import Recipe
from worker.recipes.pgbench import FOLDER, cluster_recipe

LABEL = "sysbench OLTP"
METRICS = (
    Metric(name="oltp_tps", label="OLTP transactions per second", unit=Unit.PER_S),
    Metric(name="oltp_errors", label="OLTP ignored errors", unit=Unit.COUNT, lower_is_better=True),
    Metric(name="oltp_load_s", label="OLTP load time", unit=Unit.SECONDS, lower_is_better=True),
)
DEFAULT_METRIC = "oltp_tps"
INSTALLATION = f"{sysbench.INSTALLATION} {pgbench.INSTALLATION}"


def feature_words(feature: str) -> str:
    return feature


def problems(workload: OltpWorkload, kind: TargetKind) -> tuple[str, ...]:
    return tuple(_problems(workload, kind))


def _problems(_work: OltpWorkload, kind: TargetKind) -> Iterator[str]:
    if kind is not TargetKind.DIRECTORY:
        yield f"sysbench OLTP needs a directory target, or a layout with a file system, not a {kind}"


def render(stream: Stream) -> Recipe:
    work = stream.workload
    assert isinstance(work, OltpWorkload)
    tables = (
        "sysbench", str(work.test), "--db-driver=pgsql", f"--pgsql-host={FOLDER}", "--pgsql-user=sweetspot",
        "--pgsql-db=postgres", f"--tables={work.tables}", f"--table-size={work.rows}",
    )  # fmt: skip
    run = (
        *tables, f"--threads={work.threads}", sysbench.seed_option(work.seed), "--events=0", f"--time={work.runtime_s}",
        "--report-interval=1", "--histogram=on", "run",
    )  # fmt: skip
    return cluster_recipe(stream, work, load=(*tables, "prepare"), run=run, log_level="fatal")
