"""Finished trials that are resent after an outage: seconds from the first post to the last commit."""

import argparse
import time
from collections import deque

from dev.bench.figures import Figure, figure
from dev.bench.ingest.http_client import Client
from dev.bench.ingest.server import prepare
from dev.bench.ingest.simulated_hosts import create_hosts
from dev.console import step
from dev.stack import lifecycle, services
from dev.stack.state import State

WANTED_S = 30.0
SAMPLES = 60
CONNECTIONS = 64  # with fewer, all may be at one process of the web tier


def measure(state: State, options: argparse.Namespace) -> list[Figure]:
    """`--trials` of 60 s, each of its own host, and each in one report."""
    prepare(state)
    from webapp.results.models import Sample

    services.start_web(state, services.reserve_address(state))
    port = state.read_facts("ports.json")[services.WEB]
    requests = deque(host.whole_trial(SAMPLES) for host in create_hosts(options.trials, started=False))
    with step(f"{options.trials} trials of {SAMPLES} s"):
        took_s = _post_all(port, requests)
    lost = options.trials * SAMPLES - Sample.objects.count()
    lifecycle.stop(state)
    return [
        figure("samples lost", "", [float(lost)], "0", met=lost == 0),
        figure(f"{options.trials} resent trials committed", "s", [took_s], f"< {WANTED_S:g}", met=took_s < WANTED_S),
    ]


def _post_all(port: int, requests: deque[bytes]) -> float:
    """Whichever connection is free posts the next request."""
    client, began, under_way = Client(port, CONNECTIONS), time.monotonic(), 0
    for connection in client.connections:
        if requests:
            client.send(connection, requests.popleft())
            under_way += 1
    while under_way:
        for connection in client.answers(1.0):
            under_way -= 1
            if requests:
                client.send(connection, requests.popleft())
                under_way += 1
    client.close()
    return time.monotonic() - began
