import pytest

from webapp.plans.models import PlanVersion
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import a_version
from webapp.trends.tests.measuring import Nights


@pytest.fixture
def version(db: None) -> PlanVersion:
    return a_version(slug="nightly")


@pytest.fixture
def nights(version: PlanVersion) -> Nights:
    return Nights(version, a_target(a_host("a"), "scratch"))
