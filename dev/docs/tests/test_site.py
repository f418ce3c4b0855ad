"""The documentation builds without a broken link, and every page is linked from the index page of its part."""

import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from dev.docs.__main__ import CONFIGURATION
from dev.docs.hook import PARTS
from dev.docs.plans import DOCUMENTS

INLINE = re.compile(r"<script>|<style| style=|https?://[^\"]+\.(?:js|css)\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(CONFIGURATION), strict=True, site_dir=str(folder)))
    return folder


def test_it_has_pages_that_are_written_and_pages_that_are_generated(site: Path) -> None:
    for page in ("tutorial", "understanding/architecture", "reference/factors", "how-to/plans/first-look"):
        assert "<h1" in (site / page / "index.html").read_text()


def test_it_keeps_to_the_content_security_policy_of_the_server(site: Path) -> None:
    assert [page for page in site.rglob("index.html") if INLINE.search(page.read_text())] == []


@pytest.mark.parametrize("part", PARTS)
def test_every_page_is_in_the_index_of_its_part(part: str) -> None:
    index = (DOCUMENTS / part / "index.md").read_text()
    assert [
        page.name
        for page in (DOCUMENTS / part).glob("*.md")
        if page.name != "index.md" and f"({page.name}" not in index
    ] == []


def test_the_read_me_links_to_files_that_exist() -> None:
    root = DOCUMENTS.parent
    links = re.findall(r"\]\(([^):]+?)(?:#[^)]*)?\)", (root / "README.md").read_text())
    assert links
    assert [link for link in links if not (root / link).exists()] == []
