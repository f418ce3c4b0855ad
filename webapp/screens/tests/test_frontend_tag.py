"""The tag that links the build of the front end. The manifests here are shaped as Vite writes them."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.template import Context, Template

from webapp.screens.templatetags import frontend
from webapp.tests.pages import without_line_breaks

MANIFEST = {
    "src/entries/run.ts": {"file": "assets/run-1.js", "imports": ["_charts.js"], "isEntry": True},
    "src/entries/base.ts": {"file": "assets/base-1.js", "css": ["assets/base-1.css"], "isEntry": True},
    "src/entries/theme.ts": {"file": "assets/theme-1.js", "isEntry": True},
    "_charts.js": {"file": "assets/charts-1.js", "imports": ["_deep.js"], "css": ["assets/charts-1.css"]},
    "_deep.js": {"file": "assets/deep-1.js"},
}


@pytest.fixture
def build(tmp_path: Path, settings: LazySettings) -> Path:
    settings.FRONTEND_BUILD = tmp_path
    settings.DEBUG = True
    return tmp_path


def write(build: Path, manifest: dict[str, Any] = MANIFEST) -> None:
    (build / "manifest.json").write_text(json.dumps(manifest))


def rendered(text: str) -> str:
    return without_line_breaks(Template("{% load frontend %}" + text).render(Context()))


def test_it_links_the_entry_with_everything_that_it_imports(build: Path) -> None:
    write(build)
    assert rendered('{% entry "run" %}') == (
        '<link rel="stylesheet" href="/static/assets/charts-1.css">'
        '<link rel="modulepreload" href="/static/assets/deep-1.js">'
        '<link rel="modulepreload" href="/static/assets/charts-1.js">'
        '<script type="module" src="/static/assets/run-1.js"></script>'
    )


def test_it_links_a_blocking_entry_as_a_classic_script(build: Path) -> None:
    write(build)
    assert rendered('{% blocking_entry "theme" %}') == '<script src="/static/assets/theme-1.js"></script>'


def test_it_says_what_to_do_while_nothing_is_built(build: Path) -> None:
    assert rendered('{% entry "run" %}') == ""
    assert ".ci/setup" in rendered("{% frontend_problem %}")
    write(build)
    assert rendered("{% frontend_problem %}") == ""


def test_it_names_an_entry_that_the_build_does_not_have(build: Path) -> None:
    write(build, {})
    with pytest.raises(frontend.UnknownEntry, match="'run'"):
        rendered('{% entry "run" %}')


def test_it_reads_the_manifest_once_unless_debugging(build: Path, settings: LazySettings) -> None:
    write(build)
    frontend._cached_manifest.cache_clear()
    settings.DEBUG = False
    assert "run-1.js" in rendered('{% entry "run" %}')
    write(build, {})
    assert "run-1.js" in rendered('{% entry "run" %}')
    frontend._cached_manifest.cache_clear()


@pytest.mark.parametrize(("root", "address"), [("/srv/site", "/docs/"), (None, "")])
def test_it_links_the_documentation_only_if_it_is_built(root: str | None, address: str, settings: LazySettings) -> None:
    settings.WHITENOISE_ROOT = root
    assert rendered("{% documentation %}") == address
