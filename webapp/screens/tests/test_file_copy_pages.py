"""Pages about a plan whose engine has no ramp, no runtime and no queue, and about a trial at work."""

from django.test import Client

from webapp.plans.document import Part, PlanDocument
from webapp.plans.estimate import estimate
from webapp.plans.expand import expand
from webapp.plans.tests.helpers import directory
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import a_version, first_look
from webapp.tests.factories.runs import first_look_run, start_trial

COPIES = PlanDocument(
    title="Copies", parts=(Part(name="main", factors={"engine": "file_copy", "size": "64M", "files": "2"}),)
)


def test_the_list_of_plans_shows_a_plan_of_copies(operator: Client) -> None:
    a_version(COPIES, slug="copies")
    page = operator.get("/plans/")
    assert page.status_code == 200
    assert "Copies" in page.content.decode()
    assert operator.get("/plans/copies/").status_code == 200


def test_the_phase_of_a_trial_is_a_sentence_on_every_page(viewer: Client) -> None:
    target = storage1_scratch(a_host("storage1"))
    run = first_look_run(first_look(), [target], repeats=1)
    trial = run.trials.order_by("index")[0]
    start_trial(trial)
    for address in ("/hosts/storage1/", "/hosts/storage1/targets/scratch/", f"/runs/{run.number}/trials/1/"):
        page = viewer.get(address).content.decode()
        assert "measuring" in page, address
        assert "&#x27;type&#x27;" not in page, address


def test_copies_need_the_space_of_their_sources_again() -> None:
    facts = directory()
    expansion = expand(COPIES, [facts], seed=1)
    assert expansion.problems == ()
    assert estimate(expansion).space_bytes == 2 * 2 * 64 * 2**20
