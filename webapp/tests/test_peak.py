"""The helper that measures peak memory and CPU time."""

import gc
import os
import time
from collections.abc import Iterator

import pytest

from webapp.tests.peak import cpu_seconds, measured_cost

MIB = 2**20


def test_it_finds_memory_that_the_block_has_freed_again() -> None:
    with measured_cost() as cost:
        large = bytearray(b"x" * 64 * MIB)
        del large
    assert 60 * MIB < cost.memory_bytes < 200 * MIB


def test_earlier_work_does_not_hide_later_work() -> None:
    large = [bytes(1000) for _ in range(30_000)]
    newest = large[-1]  # at the end of the heap: the allocator keeps what is before it
    del large
    with measured_cost() as cost:
        again = [bytes(1000) for _ in range(30_000)]
        del again
    assert newest
    assert cost.memory_bytes > 20 * MIB


@pytest.fixture
def eager_collector() -> Iterator[None]:
    """A full collection after 1,000 new objects, if there are few old ones."""
    before = gc.get_threshold()
    gc.set_threshold(100, 2, 2)
    yield
    gc.set_threshold(*before)


def test_objects_of_earlier_work_do_not_delay_the_collection_of_garbage(eager_collector: None) -> None:
    earlier = [[number] for number in range(300_000)]
    gc.collect()
    with measured_cost() as cost:
        for _ in range(64):
            cycle: list[object] = [bytearray(b"x" * MIB)]
            cycle.append(cycle)
            survivors = [[number] for number in range(500)]  # through two young collections
            del cycle, survivors
    assert earlier
    assert cost.memory_bytes < 32 * MIB


def test_work_that_takes_nothing_costs_nearly_nothing() -> None:
    with measured_cost() as cost:
        pass
    assert cost.memory_bytes < 5 * MIB


def test_it_measures_cpu_time_and_not_waiting() -> None:
    with measured_cost() as cost:
        time.sleep(0.3)  # waiting is the subject
    assert cost.cpu_s < 0.2
    before = cpu_seconds(os.getpid())
    with measured_cost() as cost:
        while cpu_seconds(os.getpid()) < before + 0.3:
            pass
    assert 0.25 <= cost.cpu_s < 1
