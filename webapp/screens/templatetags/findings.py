"""Lists of findings, on several pages."""

from typing import Any

from django import template

from webapp.runs.models import Run
from webapp.screens.findings import FindingList, ShownFinding, SmallChart

register = template.Library()


@register.inclusion_tag("screens/parts/findings.html", takes_context=True)
def findings_of(context: dict[str, Any], run: Run, findings: FindingList) -> dict[str, Any]:
    """Of a run: operators can review them."""
    may_review = context["request"].user.is_operator
    return {"run": run, "findings": findings, "may_review": may_review, "request": context["request"]}


@register.inclusion_tag("screens/parts/finding.html", takes_context=True)
def finding(context: dict[str, Any], shown: ShownFinding) -> dict[str, Any]:
    """One of `findings_of`."""
    return {"shown": shown, **{name: context[name] for name in ("run", "may_review", "request")}}


@register.inclusion_tag("screens/parts/small_chart.html")
def small_chart(chart: SmallChart | None) -> dict[str, Any]:
    return {"chart": chart}
