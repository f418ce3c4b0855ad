from pathlib import Path

import pytest

from dev.console import ToolError
from dev.demo.migrations import FILE, refuse_other_tables
from dev.stack.state import State


def test_data_of_changed_migrations_are_refused_with_instructions(tmp_path: Path) -> None:
    state = State(tmp_path)
    refuse_other_tables(state)
    refuse_other_tables(state)
    applied = state.read_facts(FILE)
    assert len(applied) >= 8
    state.write_facts(FILE, applied | {"webapp/runs/migrations/0001_initial.py": "another digest"})
    with pytest.raises(ToolError, match=r"runs/migrations/0001_initial.py differs\). Run `make clean`"):
        refuse_other_tables(state)


def test_new_migrations_are_not_refused(tmp_path: Path) -> None:
    state = State(tmp_path)
    refuse_other_tables(state)
    applied = state.read_facts(FILE)
    applied.popitem()
    state.write_facts(FILE, applied)
    refuse_other_tables(state)
