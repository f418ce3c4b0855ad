"""Every action that the code records has its words."""

import ast
from collections.abc import Iterator
from pathlib import Path

import webapp
from webapp.core.audit_words import AREAS, SENTENCES, area_of, choice, sentence_parts

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
    assert {"run.start", "plan.save", "host.enrol", "user.disable", "token.revoke"} <= recorded()


def test_it_has_a_sentence_with_a_place_for_the_object_for_every_action() -> None:
    assert recorded() - set(SENTENCES) == set(), "Add the sentences of these actions to webapp/core/audit_words.py."
    assert all(sentence.count("{object}") == 1 for sentence in SENTENCES.values())
    assert {action.partition(".")[0] for action in SENTENCES} <= set(AREAS)


def test_it_shows_an_unknown_action_by_its_code() -> None:
    assert sentence_parts("moon.land") == ("moon.land ", "")
    assert area_of("moon.land") == "Moon"


def test_it_offers_an_action_without_its_object() -> None:
    assert choice("run.move") == "Moved … in the queue"
