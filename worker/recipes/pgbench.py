"""The pgbench engine's recipe. Its program reads the job as JSON on standard input: the exact commands, in order."""

from collections.abc import Iterator

import msgspec

from worker.contract.items import Metric, Unit
from worker.contract.pgbench import PgbenchWorkload, Script
from worker.contract.postgres import PostgresWorkload
from worker.contract.workload import KIB, MIB, Stream, TargetKind
from worker.recipes.base import Recipe, temporary_folder

LABEL = "pgbench"
METRICS = (
    Metric(name="tps", label="Transactions per second", unit=Unit.PER_S),
    Metric(name="load_s", label="Database load time", unit=Unit.SECONDS, lower_is_better=True),
    Metric(name="failed_transactions", label="Failed transactions", unit=Unit.COUNT, lower_is_better=True),
)
DEFAULT_METRIC = "tps"
INSTALLATION = (
    "Install PostgreSQL with pgbench: Debian's and Ubuntu's package postgresql, or postgresql-server and "
    "postgresql-contrib. It also needs the user postgres, which these packages create."
)
COMMAND = ("python3", "-m", "worker.engines.pgbench.program")  # the worker starts it with its Python interpreter
FOLDER = "/proc/self/fd/100"  # the open temporary folder: PostgreSQL's user cannot enter the folders above it
_CONNECTION = (f"--host={FOLDER}", "--username=sweetspot")
_SPARE_CONNECTIONS = 10  # for the superuser, and for the checkpoint


class PgbenchJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The input of the program. Commands are without the folder of PostgreSQL's programs."""

    folder: str
    logs: int  # of pgbench, one for each thread; 0: the lines that the measured program prints are passed on
    prompt_log: bool  # each line of pgbench's log at once; else about a hundred together, which costs less
    initdb: tuple[str, ...]
    server: tuple[str, ...]
    ready: tuple[str, ...]
    load: tuple[str, ...]
    checkpoint: tuple[str, ...]
    run: tuple[str, ...]


def feature_words(feature: str) -> str:
    return feature


def problems(workload: PgbenchWorkload, kind: TargetKind) -> tuple[str, ...]:
    return tuple(_problems(workload, kind))


def _problems(work: PgbenchWorkload, kind: TargetKind) -> Iterator[str]:
    if kind is not TargetKind.DIRECTORY:
        yield f"pgbench needs a directory target, or a layout with a file system, not a {kind}"
    if work.threads > work.clients:
        yield f"{work.threads} threads of pgbench cannot share {work.clients} clients: use at most one for each client"


def render(stream: Stream) -> Recipe:
    work = stream.workload
    assert isinstance(work, PgbenchWorkload)
    return cluster_recipe(
        stream,
        work,
        load=("pgbench", "--initialize", f"--scale={work.scale}", "--quiet", *_CONNECTION, "postgres"),
        run=(
            "pgbench", "--no-vacuum", f"--builtin={work.script}", f"--client={work.clients}",
            f"--jobs={work.threads}", f"--time={work.runtime_s}", "--log", f"--log-prefix={FOLDER}/log", *_CONNECTION,
            "postgres",
        ),
        logs=work.threads,
        prompt_log=work.script is not Script.SELECT,
    )  # fmt: skip


def cluster_recipe(
    stream: Stream,
    work: PostgresWorkload,
    *,
    load: tuple[str, ...],
    run: tuple[str, ...],
    logs: int = 0,
    prompt_log: bool = False,
    log_level: str = "warning",
) -> Recipe:
    """Create a cluster, fill it with `load`, and measure `run`. `log_level`: lowest level of the server's own log."""
    job = PgbenchJob(
        folder=temporary_folder(stream),
        logs=logs,
        prompt_log=prompt_log,
        initdb=(
            "initdb", f"--pgdata={FOLDER}/data", "--username=sweetspot", "--auth=trust", "--encoding=UTF8",
            "--locale=C",
        ),
        server=("postgres", "-D", f"{FOLDER}/data", *_settings(work, log_level)),
        ready=("psql", *_CONNECTION, "--dbname=postgres", "--command=select 1"),
        load=load,
        checkpoint=("psql", *_CONNECTION, "--dbname=postgres", "--command=checkpoint"),
        run=run,
    )  # fmt: skip
    text = msgspec.json.format(msgspec.json.encode(job), indent=2).decode()
    return Recipe(text + "\n", COMMAND, ())


def _settings(work: PostgresWorkload, log_level: str) -> Iterator[str]:
    """The server's settings that differ from PostgreSQL's defaults, or decide about its speed."""
    for name, value in {
        "listen_addresses": "",  # no network: only a socket in the folder
        "unix_socket_directories": FOLDER,
        "unix_socket_permissions": "0700",
        "dynamic_shared_memory_type": "mmap",  # in the folder, so that nothing is left if it is killed
        "log_min_messages": log_level,  # sysbench's transactions that conflict would write three lines each
        "max_connections": work.connections + _SPARE_CONNECTIONS,
        "shared_buffers": f"{work.shared_buffers_bytes // KIB}kB",
        "fsync": _switch(on=work.fsync),
        "synchronous_commit": _switch(on=work.synchronous_commit),
        "full_page_writes": _switch(on=work.full_page_writes),
        "max_wal_size": f"{work.max_wal_bytes // MIB}MB",
    }.items():
        yield from ("-c", f"{name}={value}")


def _switch(*, on: bool) -> str:
    return "on" if on else "off"
