"""The private server that the benchmarks post to."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import django
from django.core.management import call_command

from dev.console import step
from dev.stack import lifecycle, processes, services
from dev.stack.state import State


def prepare(state: State) -> None:
    """Start PostgreSQL and Redis, create the tables and set up Django in this process."""
    lifecycle.start_stores(state)
    os.environ.update(services.environment(state))
    django.setup()
    with step("database tables"):
        call_command("migrate", verbosity=0)
        call_command("setup", stdout=open(os.devnull, "w"))  # noqa: SIM115, PTH123


@contextmanager
def one_gunicorn(state: State) -> Iterator[int]:
    """Run one gunicorn process that also serves the bare view; yields its port."""
    listener = services.reserve_address(state)
    assert listener
    port = int(listener.getsockname()[1])
    command = services.web(state, listener)
    environment = {**command.environment, "DJANGO_SETTINGS_MODULE": "dev.bench.ingest.settings"}
    processes.start(state, replace(command, argv=(*command.argv, "--workers", "1"), environment=environment))
    listener.close()
    try:
        yield port
    finally:
        processes.stop(state, services.WEB)
