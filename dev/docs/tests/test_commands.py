"""The commands, options and addresses in the documentation exist, and the numbers in the README are right."""

import argparse
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib.util import find_spec
from urllib.parse import parse_qs

import pytest
from django.core.management import get_commands, load_command_class

import worker.cli
import worker.client.main
from dev.docs.plans import DOCUMENTS
from dev.server_check.__main__ import PREPARE
from webapp.api.urls import api
from webapp.plans.services import BUILTIN
from worker import settings

ROOT = DOCUMENTS.parent
PAGES = sorted({ROOT / "README.md", ROOT / "dev/README.md", ROOT / "worker/README.md", *DOCUMENTS.rglob("*.md")})
SERVER_SCRIPT = ROOT / "webapp/deploy/sweetspot-server"


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
    (
        r"sweetspot-server ([a-z][a-z-]*)",
        lambda: re.findall(r"^#   sweetspot-server (\S+)", SERVER_SCRIPT.read_text(), re.M),
    ),
)
NAMES = ("make", "manage.py", "sweetspot", "sweetspot-worker", "sweetspot-server")


def code(text: str) -> str:
    """Code blocks of shells, and code spans."""
    blocks = re.findall(r"^ *```(?:sh|bash|console|yaml)?\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL))
    return "\n".join([*blocks, *spans])


@pytest.mark.parametrize(("pattern", "existing"), COMMANDS, ids=NAMES)
def test_it_exists(pattern: str, existing: Callable[[], Collection[str]]) -> None:
    named = {(name, page.name) for page in PAGES for name in re.findall(pattern, code(page.read_text()), re.MULTILINE)}
    assert named
    known = existing()
    assert sorted((name, page) for name, page in named if name not in known) == []


def parsers(program: str, words: Sequence[str]) -> Iterator[argparse.ArgumentParser]:
    """Of the command, and of each subcommand that its words name."""
    if program == "manage.py":
        yield load_command_class(get_commands()[words[0]], words[0]).create_parser("manage.py", words[0])
        return
    parser = {"sweetspot": worker.client.main.build_parser, "sweetspot-worker": worker.cli.build_parser}[program]()
    yield parser
    for word in words:
        choices = {
            name: made
            for action in parser._actions
            if isinstance(action, argparse._SubParsersAction)
            for name, made in action.choices.items()
        }
        if word in choices:
            parser = choices[word]
            yield parser


def commands_with_options() -> Iterator[tuple[str, str, str]]:
    """Page, program and the rest of the command's line."""
    programs = r"(sweetspot|sweetspot-worker|manage\.py|sweetspot-server manage)"
    lines = re.compile(rf"^\s*(?:- |run: |.*python )?{programs} ([^\n|;>&]*)", re.MULTILINE)
    for page in PAGES:
        for program, rest in lines.findall(code(page.read_text())):
            if "--" in rest:
                yield page.name, program.replace("sweetspot-server manage", "manage.py"), rest
    table = (DOCUMENTS / "reference/command-line.md").read_text()
    for rest in re.findall(r"^\| `([^`]*)`", table, re.MULTILINE):
        yield "command-line.md", "sweetspot", rest


def test_its_options_exist() -> None:
    named, wrong = 0, []
    for page, program, rest in commands_with_options():
        known = {text for made in parsers(program, rest.split()) for text in made._option_string_actions}
        options = re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)
        named += len(options)
        wrong += [(page, program, rest, option) for option in options if option not in known]
    assert named > 50
    assert wrong == []


def test_each_option_of_the_command_line_is_in_its_reference() -> None:
    page = (DOCUMENTS / "reference/command-line.md").read_text()
    made = {
        parser for name in subcommands(worker.client.main.build_parser()) for parser in parsers("sweetspot", [name])
    }
    options = {text for parser in made for text in parser._option_string_actions if text.startswith("--")}
    assert sorted(option for option in options - {"--help", "--version"} if option not in page) == []


def test_modules_that_are_run_exist() -> None:
    named = {name for page in PAGES for name in re.findall(r"python3? -m ([\w.]+)", code(page.read_text()))}
    assert sorted(name for name in named if find_spec(name) is None) == []


def test_addresses_of_the_api_and_their_parameters_exist() -> None:
    known = {
        (method.upper(), tuple(path.split("/"))): {parameter["name"] for parameter in operation.get("parameters", ())}
        for path, methods in json.loads(json.dumps(api.get_openapi_schema(), default=str))["paths"].items()
        for method, operation in methods.items()
    }
    found = {
        (page.name, method, address.removeprefix("/api/v1"))
        for page in PAGES
        for method, address in re.findall(r"\b(GET|POST|PUT|PATCH|DELETE) (/[^\s`]*)", code(page.read_text()))
        if not address.startswith("/api/worker/")
    }
    assert len(found) > 20
    wrong = []
    for page, method, address in sorted(found):
        path, _, query = address.partition("?")
        words = tuple(f"/api/v1{path}".split("/"))
        fitting = [keys for (verb, of), keys in known.items() if verb == method and fits(words, of)]
        if not any(set(parse_qs(query, keep_blank_values=True)) <= keys for keys in fitting):
            wrong.append((page, method, address))
    assert wrong == []


def fits(words: Sequence[str], template: Sequence[str]) -> bool:
    """A part in braces stands for any word."""
    return len(words) == len(template) and all(
        part.startswith("{") or word == part for word, part in zip(words, template, strict=True)
    )


def test_each_command_of_the_server_is_in_its_reference() -> None:
    page = (DOCUMENTS / "reference/server-settings.md").read_text()
    ours = {name for name, app in get_commands().items() if app.startswith("webapp.")}
    assert sorted(name for name in ours if f"manage.py {name}" not in page) == []


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
