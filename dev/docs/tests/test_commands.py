"""The commands in the documentation and the README exist, and the numbers in the README are right."""

import argparse
import re
from collections.abc import Callable, Collection

import pytest
from django.core.management import get_commands

import worker.cli
import worker.client.main
from dev.docs.plans import DOCUMENTS
from dev.server_check.__main__ import PREPARE
from webapp.plans.services import BUILTIN
from worker import settings

ROOT = DOCUMENTS.parent
PAGES = sorted({ROOT / "README.md", *DOCUMENTS.rglob("*.md")})


def make_targets() -> Collection[str]:
    return re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def subcommands(parser: argparse.ArgumentParser) -> Collection[str]:
    return {
        name for action in parser._actions if isinstance(action, argparse._SubParsersAction) for name in action.choices
    }


# In a code span or a code block, so that a sentence such as “make sure” does not count.
COMMANDS: tuple[tuple[str, Callable[[], Collection[str]]], ...] = (
    (r"(?<![\w-])make ([a-z][a-z-]*)", make_targets),
    (r"manage\.py ([a-z]\w+)", get_commands),
    (r"^\s*(?:- |run: )?sweetspot ([a-z]+)", lambda: subcommands(worker.client.main.build_parser())),
    (r"(?<![\w/])sweetspot-worker ([a-z]+)", lambda: subcommands(worker.cli.build_parser())),
)


def code(text: str) -> str:
    """Code blocks of shells, and code spans."""
    blocks = re.findall(r"^ *```(?:sh|bash|console|yaml)?\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL))
    return "\n".join([*blocks, *spans])


@pytest.mark.parametrize(("pattern", "existing"), COMMANDS, ids=("make", "manage.py", "sweetspot", "sweetspot-worker"))
def test_it_exists(pattern: str, existing: Callable[[], Collection[str]]) -> None:
    named = {(name, page.name) for page in PAGES for name in re.findall(pattern, code(page.read_text()), re.MULTILINE)}
    assert named
    known = existing()
    assert sorted((name, page) for name, page in named if name not in known) == []


def test_every_command_of_the_server_that_a_page_names_is_run_by_a_test() -> None:
    ours = {name for name, app in get_commands().items() if app.startswith("webapp.")}
    named = {name for page in PAGES for name in re.findall(r"manage\.py ([a-z]\w+)", code(page.read_text()))} & ours
    sources = [*(ROOT / "webapp").rglob("tests/**/*.py"), *(ROOT / "dev").rglob("*.py")]
    called = {name for path in sources for name in re.findall(r'"(\w+)"', path.read_text())}
    assert named - called == set()


def test_the_manual_has_the_commands_for_a_server_without_internet_that_server_check_runs() -> None:
    assert PREPARE in (DOCUMENTS / "how-to/server-on-debian.md").read_text()


def test_the_numbers_of_the_readme_are_right() -> None:
    text = (ROOT / "README.md").read_text()
    assert f"There are {len(list(BUILTIN.glob('*.yaml')))} [built-in plans]" in text
    assert f"[{len(settings.REGISTRY)} settings]" in text
