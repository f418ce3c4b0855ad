"""Lets an open page notice that results were marked as invalid."""

from typing import Any

from django import template

from webapp.results.validity import marks_changed

register = template.Library()


@register.inclusion_tag("screens/parts/marks.html")
def marks(run: int | None = None) -> dict[str, Any]:
    """The number of validity changes of one run, or of all runs. One query."""
    return {"run": run, "count": marks_changed(str(run or ""))}
