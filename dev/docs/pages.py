"""The pages that are generated from the code. A page that also exists in `docs/` gets the generated text at its end."""

from dev.docs import factors, metrics, plans, states


def generated_pages() -> dict[str, str]:
    """Markdown by path below `docs/`."""
    return {
        "reference/factors.md": factors.page(),
        "reference/metrics.md": metrics.page(),
        "reference/states.md": states.page(),
        **plans.pages(),
    }
