"""Finished trials that are resent after an outage: seconds from the first post to the last commit."""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

from dev.bench.figures import Figure, figure
from dev.bench.ingest.load import Server
from dev.bench.ingest.server import prepare
from dev.bench.ingest.simulated_hosts import REPORT, create_hosts
from dev.console import step
from dev.stack import services
from dev.stack.state import State

WANTED_S = 30.0
SAMPLES = 60
CONNECTIONS = 64  # with fewer, all may be at one process of the web tier


def measure(state: State, options: argparse.Namespace) -> list[Figure]:
    """`--trials` of 60 s, each of its own host, and each in one report."""
    prepare(state)
    from webapp.results.models import Sample

    services.start_web(state, services.reserve_address(state))
    server = Server(state.read_facts("ports.json")[services.WEB], CONNECTIONS)
    hosts = create_hosts(options.trials, started=False)
    reports = [(host.headers, host.whole_trial(SAMPLES)) for host in hosts]
    began = time.monotonic()
    with step(f"{options.trials} trials of {SAMPLES} s"), ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(lambda report: server.post(REPORT, *report), reports))
    took_s = time.monotonic() - began
    lost = options.trials * SAMPLES - Sample.objects.filter(attempt__in=[host.attempt for host in hosts]).count()
    return [
        figure("samples lost", "", [float(lost)], "0", met=lost == 0),
        figure(f"{options.trials} resent trials committed", "s", [took_s], f"< {WANTED_S:g}", met=took_s < WANTED_S),
    ]
