"""Fixtures of these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.tests.service import Bench
from worker.tests.service_orders import POLICY


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("target")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Bench]:
    """A worker for all tests that leave it alive."""
    bench = Bench(tmp_path_factory.mktemp("shared"), POLICY.format(path=folder))
    bench.start()
    yield bench
    bench.close()


@pytest.fixture
def own(tmp_path: Path, folder: Path) -> Iterator[Bench]:
    """A worker for a test that ends it."""
    bench = Bench(tmp_path, POLICY.format(path=folder))
    bench.start()
    yield bench
    bench.close()
