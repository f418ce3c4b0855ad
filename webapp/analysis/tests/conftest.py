import pytest

from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.results import Lab


@pytest.fixture
def lab() -> Lab:
    return Lab(a_target(a_host("a"), "scratch"))
