from pathlib import Path

from worker.settings import REGISTRY, table

PAGE = Path(__file__).parents[3] / "docs/reference/settings.md"


def test_the_documentation_lists_every_setting_as_it_is() -> None:
    assert PAGE.read_text() == table.page(), "run `python -m worker.settings.table > docs/reference/settings.md`"


def test_it_says_of_no_setting_that_is_gone_where_it_was_tried() -> None:
    assert set(table._TRIED) <= set(REGISTRY)
