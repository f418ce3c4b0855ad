"""What the preview shows is, letter for letter, what fio was given."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from webapp.hosts.models import Target
from webapp.plans.document import Part, PlanDocument
from webapp.plans.preview import jobs_of, preview
from webapp.results.models import StreamRun
from webapp.tests.drives import loop_device
from webapp.tests.system import StorageHost, System

pytestmark = [pytest.mark.pipeline]

LINKED = """
[[target]]
id = "linked"
kind = "block"
path = "{link}"
stable_id = "loop:{file}"
destroy = true
"""


@pytest.fixture
def linked(system: System) -> Iterator[StorageHost]:
    """A host whose policy names its device by a link, as it would by /dev/disk/by-id."""
    link = Path(f"/dev/sweetspot-linked-{os.getpid()}")
    with loop_device(system.folder, "linked") as device:
        link.symlink_to(device)
        host = system.add_host("storage2", LINKED.format(link=link, file=system.folder / "linked.img"))
        try:
            yield host
        finally:
            host.stop()
            link.unlink()


def assert_shown_is_run(system: System, target: Target, *, pattern: str) -> str:
    """Run a small plan on the target; the text that fio got is the previewed one, which is returned."""
    factors = {"pattern": pattern, "block_size": "4k", "iodepth": "4", "runtime": "1s", "size": "16M"}
    document = PlanDocument(title="Shown", parts=(Part(name="main", factors=factors),), repeats=1)
    (planned,) = preview(document, [target]).expansion.trials
    (stream,) = jobs_of(planned, {str(target.pk): target})
    shown = stream.recipe.job_text
    run = system.start_run(document, target, armed=[target.arming_serial])
    system.until_ended(run, limit_s=60)
    assert [trial.reason for trial in run.trials.all()] == [""]
    assert StreamRun.objects.get(attempt__run=run).job_text == shown
    return shown


def test_it_is_the_job_in_a_directory(system: System, storage: StorageHost) -> None:
    assert "filename=sweetspot." in assert_shown_is_run(system, storage.target("scratch"), pattern="randread")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_it_is_the_job_on_a_device_behind_a_link(system: System, linked: StorageHost) -> None:
    target = linked.target("linked")
    text = assert_shown_is_run(system, target, pattern="randwrite")
    assert f"filename={Path(target.path).resolve()}\n" in text
    assert target.path not in text
