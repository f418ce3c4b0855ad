"""Move a run in the queue."""

from django.db import transaction

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.runs.dispatch.queue import lock_queue, queued_runs
from webapp.runs.models import Run


@transaction.atomic
def move_in_queue(*, run: Run, before: Run | None = None, after: Run | None = None, by: User | None) -> None:
    """Move a run directly before or after another one. Safe to repeat.

    Raises Refusal not_waiting if one of them is not in the queue.
    """
    other = before or after
    if other is None:
        raise Refusal("position_missing", "Choose the run before or after which to place it.")
    lock_queue()
    order = list(queued_runs().select_for_update(no_key=True, of=("self",)))
    for each in (run, other):
        if each not in order:
            raise Refusal("not_waiting", f"Run {each.number} is not in the queue.")
    if run == other:
        return
    moved = [each for each in order if each != run]
    moved.insert(moved.index(other) + (before is None), next(each for each in order if each == run))
    if moved == order:
        return
    for position, each in enumerate(moved, start=1):
        each.queue_position = position
    Run.objects.bulk_update(moved, ["queue_position"])
    audit(by=by, action="run.move", on=run, detail={"before" if before else "after": other.number})
