"""What an attempt is doing just now, in words for people."""

from webapp.runs.models import Attempt

# The worker's phases (contract.items.Phase.name).
_WORDS = {
    "guard": "checking the target",
    "settings": "changing settings",
    "prefill": "writing the files first",
    "run": "measuring",
    "restore": "putting settings back",
}


def doing(attempt: Attempt) -> str:
    """A phase that a newer worker may know is shown by its own name."""
    name, space, detail = attempt.phase.partition(" ")
    return _WORDS.get(name, name) + space + detail or attempt.get_state_display().lower()
