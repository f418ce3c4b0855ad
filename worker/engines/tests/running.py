"""A stream for an engine under test, with lists for its reports."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

from worker.contract.items import Sample, StreamResult, StreamStarted
from worker.contract.workload import Stream
from worker.engines import Engine
from worker.engines.running import Running
from worker.journal import Journal
from worker.kernel.targets import OpenTarget
from worker.process.run import Limits
from worker.process.scope import Scope, open_scope
from worker.recipes.base import temporary_folder as folder_name
from worker.temporary import temporary_folder


def running(
    stream: Stream,
    target: OpenTarget,
    scope: Scope,
    cancelled: threading.Event,
    *,
    silence_s: float = 10,
    total_s: float = 20,
    on_started: Callable[[StreamStarted], None] = lambda _: None,
    on_sample: Callable[[Sample], None] = lambda _: None,
) -> Running:
    def report(item: StreamStarted | Sample) -> None:
        if isinstance(item, StreamStarted):
            on_started(item)
        else:
            on_sample(item)

    limits = Limits(total_s=total_s, silence_s=silence_s)
    return Running(stream=stream, target=target, scope=scope, limits=limits, cancelled=cancelled, report=report)


def run_in_folder(
    engine: Engine,
    tmp_path: Path,
    stream: Stream,
    cancelled: threading.Event,
    on_sample: Callable[[Sample], None],
    on_started: Callable[[StreamStarted], None] = lambda _: None,
) -> StreamResult:
    """The engine on `tmp_path/data`, in a temporary folder, of which nothing is left."""
    state, data = tmp_path / "state", tmp_path / "data"
    state.mkdir()
    data.mkdir(mode=0o700)
    fd, journal = os.open(data, os.O_DIRECTORY), Journal(state / "journal")
    try:
        with temporary_folder(folder_name(stream), fd, journal), open_scope(state, "stream") as scope:
            target = OpenTarget(path=".", cwd_fd=fd)
            of = running(
                stream, target, scope, cancelled, silence_s=60, total_s=120, on_started=on_started, on_sample=on_sample
            )
            return engine.run_stream(of)
    finally:
        assert (list(data.iterdir()), journal.folders()) == ([], ())
        journal.close()
        os.close(fd)
