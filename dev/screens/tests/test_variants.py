"""The pages that `make screens` opens beside those of the URL table."""

import pytest
from django.test import Client

from dev.screens.variants import explore_variants, product_variants
from webapp.core.models import Role
from webapp.results.models import Configuration
from webapp.tests.factories.hosts import a_host, storage1_drive
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run

pytestmark = pytest.mark.django_db


def test_every_variant_has_a_page() -> None:
    run = first_look_run(first_look(), [storage1_drive(a_host("storage1"))], repeats=1)
    finish_run(run)
    Configuration.objects.update(controller="PERC H755 Front")
    grid = an_import(title="Grid")
    grid.slug = "x25-m-lvm-stripe"
    grid.save()
    paths = explore_variants("run=1&x=iodepth&series=ioengine") | product_variants(run)
    assert {"explore-contours", "explore-latency", "trend", "product-drive", "product-controller"} <= set(paths)
    client = Client()
    client.force_login(a_user("vera", Role.VIEWER))
    assert {name: client.get(path, follow=True).status_code for name, path in paths.items()} == dict.fromkeys(
        paths, 200
    )
