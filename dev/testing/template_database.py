"""A fixture that creates the tables of the test database once. Each process of pytest gets a copy."""

import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import DjangoDbBlocker


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,  # noqa: ARG001
    django_db_blocker: DjangoDbBlocker,
) -> None:
    """Let the first process create a template with all tables, and let Django copy the template in each process.

    Creating the tables takes 4 s of CPU time, copying them 0.1 s. `make test` removes the template with its private
    PostgreSQL.
    """
    facts, name = connection.settings_dict, connection.settings_dict["NAME"]
    facts["TEST"]["TEMPLATE"] = template = f"template_{name}"
    from webapp.results.retention import create_partitions

    with django_db_blocker.unblock(), connection._nodb_cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(1)")
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [template])
        if cursor.fetchone() is None:
            cursor.execute(f"CREATE DATABASE {connection.ops.quote_name(template)}")
            facts["NAME"] = template
            call_command("migrate", interactive=False, verbosity=0)
            create_partitions()  # as the server does each day; tests write samples without the ingest
            connection.close()  # PostgreSQL copies a database only while nobody is connected to it
            facts["NAME"] = name
