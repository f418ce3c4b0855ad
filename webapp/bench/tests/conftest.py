import pytest

from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import Lab

SAMSUNG, INTEL = "SAMSUNG MZQL21T9HCJR", "INTEL SSDPF2KX038TZ"


@pytest.fixture
def samsung(db: None) -> Lab:
    """One run on a drive in storage1."""
    return Lab(a_drive(a_host("storage1"), "nvme0", model=SAMSUNG, serial="S1"))


@pytest.fixture
def intel(samsung: Lab) -> Lab:
    """The run after it, on another drive of the same host."""
    return Lab(a_drive(samsung.target.host, "nvme1", model=INTEL, serial="I1"), number=2)
