"""`{% options choices %}`: the options of a select."""

from collections.abc import Iterable

from django import template

from webapp.screens.choices import Option

register = template.Library()


@register.inclusion_tag("screens/tags/options.html")
def options(options: Iterable[Option]) -> dict[str, Iterable[Option]]:
    return {"options": options}
