"""What `make screens` opens for the pages of imports and for Bench."""

import pytest

from dev.screens.samples import bench_page, imported_pages
from webapp.results.models import Import
from webapp.tests.factories.imports import LOG, an_import

pytestmark = pytest.mark.django_db


def test_pages_of_imports_show_one_with_a_time_series() -> None:
    assert imported_pages() == {}
    an_import()
    assert imported_pages() == {"imports/number": 1}
    an_import(title="With a log", text="direction,iops\nread,1\n", further=[LOG])
    an_import(title="Newest", text="direction,iops\nread,2\n")
    assert imported_pages() == {"imports/number": 2, "imports/test": 2}


def test_bench_shows_references_that_share_tests() -> None:
    an_import()
    assert bench_page() == {}
    for slug in ("mtron-raid5-4", "mtron-raid0-12", "eva4400-fata"):
        Import.objects.filter(pk=an_import(title=slug).pk).update(slug=slug)
    assert bench_page() == {"bench": "/bench/?product=import:3&product=import:2"}
