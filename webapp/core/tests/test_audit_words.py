"""Every action that the code records has its words."""

import ast
from collections.abc import Iterator
from pathlib import Path

import webapp
from webapp.core.audit_words import AREAS, WORDS, area_of, in_words

ROOT = Path(webapp.__file__).parent


def sources() -> Iterator[Path]:
    return (path for path in ROOT.rglob("*.py") if "tests" not in path.parts and "migrations" not in path.parts)


def actions_in(tree: ast.AST) -> Iterator[str]:
    """Every `action="area.verb"` that is given to anything: `audit`, or what calls it."""
    for call in ast.walk(tree):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg == "action" and isinstance(value, str) and "." in value:
                yield value


def recorded() -> set[str]:
    return {action for path in sources() for action in actions_in(ast.parse(path.read_text()))}


def test_it_finds_the_actions_of_the_code() -> None:
    assert {"run.start", "plan.save", "host.enrol", "user.deactivate", "token.revoke"} <= recorded()


def test_it_has_words_for_every_action() -> None:
    assert recorded() - set(WORDS) == set(), "Say in webapp/core/audit_words.py what these do."
    assert {action.partition(".")[0] for action in WORDS} <= set(AREAS)


def test_it_shows_an_action_that_it_does_not_know_as_it_is() -> None:
    assert in_words("moon.land") == "moon.land"
    assert area_of("moon.land") == "Moon"
