"""The name of a removed person is stored in one row: nothing else in the database holds it."""

from django.db import connection

from webapp.core import people
from webapp.core.models import Role, User
from webapp.core.services import create_api_token
from webapp.runs.actions.annotations import add_note
from webapp.runs.actions.run_actions import pause_run, resume_run, skip_trials
from webapp.runs.models import Run
from webapp.runs.services import cancel_run
from webapp.schedules.due import make_occurrences
from webapp.schedules.services import delete_schedule, skip_occurrence, switch_off, switch_on
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.notices import a_subscription
from webapp.tests.factories.people import a_user
from webapp.tests.factories.runs import a_run
from webapp.tests.factories.schedules import a_schedule

NAME = "zelda.quist"
_TEXTS = """
select table_name, column_name from information_schema.columns
where table_schema = 'public' and data_type in ('character varying', 'text', 'json', 'jsonb', 'ARRAY')
"""


def places_of(text: str) -> list[tuple[str, str]]:
    """Tables and columns that contain a text."""
    with connection.cursor() as cursor:
        cursor.execute(_TEXTS)
        found = []
        for table, column in cursor.fetchall():
            cursor.execute(
                f'select exists (select 1 from "{table}" where "{column}"::text ilike %s)',
                [f"%{text}%"],
            )
            if cursor.fetchone()[0]:
                found.append((table, column))
        return found


def act(name: str) -> None:
    """Everything that was once stored as a sentence with the person's name."""
    person, admin = a_user(name), a_user("ada", Role.ADMIN)
    create_api_token(user=person, name="nightly")
    a_subscription()  # of another person, who gets notices about missed due times
    run = a_run(a_target(), trials=3, created_by=person)
    pause_run(run=run, by=person)
    resume_run(run=run, by=person)
    skip_trials(run=run, numbers=[1], reason="too slow", by=person)
    add_note(run=run, trial=None, text="warm", by=person)
    cancel_run(run=Run.objects.get(pk=run.pk), by=person)
    for end in ("skip", "off", "delete"):
        schedule = a_schedule(person, name=f"nightly {end}")
        (occurrence,) = make_occurrences(schedule, schedule.created_at)
        if end == "skip":
            skip_occurrence(occurrence=occurrence, by=person)
        elif end == "off":
            switch_off(schedule=schedule, by=person)
            switch_on(schedule=schedule, by=person)
        else:
            delete_schedule(schedule=schedule, by=person)
    people.change_role(user=person, role=Role.VIEWER, by=admin)
    people.remove_user(user=person, by=admin)


def test_a_name_is_in_no_text_of_the_database_after_its_person_was_anonymised(db: None) -> None:
    act(NAME)
    assert places_of(NAME) == [("core_user", "username")]
    user = User.objects.get(username=NAME)
    people.anonymise_user(user=user, by=User.objects.get(username="ada"))
    assert places_of(NAME) == []
