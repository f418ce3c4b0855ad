"""Filters that write what is offered to choose from."""

from collections.abc import Iterable

from django import template
from django.utils.safestring import SafeString

from webapp.screens import choices

register = template.Library()

register.filter("option_tags", choices.option_tags)


@register.filter
def check_boxes(options: Iterable[choices.Option], name: str) -> SafeString:
    return choices.check_boxes(name, options)
