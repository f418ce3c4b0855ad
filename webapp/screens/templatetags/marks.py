"""What tells an open page that results were marked as invalid meanwhile."""

from typing import Any

from django import template

from webapp.results.validity import marks_changed

register = template.Library()


@register.inclusion_tag("screens/parts/marks.html")
def marks(run: int | None = None) -> dict[str, Any]:
    """Of one run, else of any. One query."""
    return {"run": run, "count": marks_changed(str(run or ""))}
