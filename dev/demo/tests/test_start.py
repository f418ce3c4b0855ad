import pytest

from dev.demo.start import has_data
from webapp.runs.models import Run, RunState, Trial, TrialState
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.runs import a_run


@pytest.mark.django_db
def test_a_demo_with_data_is_not_measured_again() -> None:
    assert not has_data()
    run = a_run(a_target())
    assert has_data()  # its worker goes on with it
    Run.objects.update(state=RunState.CANCELLED)
    assert not has_data()
    Trial.objects.filter(run=run, index=0).update(state=TrialState.DONE)
    assert has_data()
