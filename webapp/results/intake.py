"""What one report has to say about one attempt, gathered so that it is written in few statements."""

from dataclasses import dataclass, field

from webapp.core import prepared
from webapp.results.bad_item import BadItem
from webapp.results.models import LegRun, Result
from webapp.results.samples import copy
from webapp.runs.ending import end_attempt
from webapp.runs.models import Attempt, AttemptState, SettingChange
from webapp.runs.states import Later
from worker.contract.items import Finished, Sample


@dataclass
class Intake:
    """`attempt` is locked. Everything is collected here and in `later`, and written by `write`."""

    attempt: Attempt
    later: Later = field(default_factory=Later)  # of the attempt and its trial
    samples: list[Sample] = field(default_factory=list)
    setting_changes: list[SettingChange] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    finished: Finished | None = None
    _legs: dict[int, LegRun] | None = None
    _changed_legs: dict[int, dict[str, object]] = field(default_factory=dict)

    @property
    def legs(self) -> dict[int, LegRun]:
        """Legs that have started, by number."""
        if self._legs is None:
            known = LegRun.objects.filter(attempt=self.attempt) if self.attempt.started_at else ()
            self._legs = {leg.leg: leg for leg in known}
        return self._legs

    def leg(self, number: int, what: str) -> LegRun:
        """The leg that `what` is said of. Raises BadItem where it never started."""
        if number not in self.legs:
            raise BadItem(f"A {what} of leg {number}, which has not started.")
        return self.legs[number]

    def change_leg(self, leg: LegRun, **changes: object) -> None:
        """Note new values of a leg's columns."""
        self._changed_legs.setdefault(leg.leg, {}).update(changes)
        for name, value in changes.items():
            setattr(leg, name, value)

    def write(self) -> None:
        """Rules that only the database can see are seen here. The attempt's end comes last: its run may end with it."""
        new = [leg for leg in (self._legs or {}).values() if leg.pk is None]
        prepared.insert_for_keys(new)
        for result in self.results:
            result.leg_run_id = result.leg_run.pk
        if self.samples:
            copy(self.attempt.pk, self.samples)
        with prepared.together():
            for number, changes in self._changed_legs.items():
                if self.legs[number] not in new:
                    prepared.update(self.legs[number], changes)
            prepared.insert(self.setting_changes)
            prepared.insert(self.results)
        if self.finished is None:
            self.later.write()
        else:
            outcome = AttemptState(self.finished.outcome.value)
            end_attempt(self.attempt, outcome, code=self.finished.code, message=self.finished.message, later=self.later)
