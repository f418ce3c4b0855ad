"""The new initial migration of each app. `python -m dev.release.squash` itself compares the tables of a database."""

from django.apps import apps
from django.db.migrations import RunSQL
from django.db.migrations.graph import MigrationGraph

from dev.release.squash import INITIAL, detected_migrations, initial_migration, other_operations

LABELS = {app.label for app in apps.get_app_configs() if app.name.startswith("webapp.")}


def test_each_app_gets_one_migration_and_none_depends_on_itself() -> None:
    detected = detected_migrations(LABELS)
    others = {label: other_operations(label) for label in LABELS}
    graph = MigrationGraph()
    initial = {label: initial_migration(label, parts, others) for label, parts in detected.items()}
    for label, migration in initial.items():
        graph.add_node((label, INITIAL), migration)
    for label, migration in initial.items():
        for needed in migration.dependencies:
            if needed[0] in LABELS:
                graph.add_dependency(migration, (label, INITIAL), needed)
    graph.ensure_not_cyclic()
    assert initial.keys() >= {"core", "hosts", "plans", "runs", "results"}


def test_statements_before_and_after_the_tables_keep_their_side() -> None:
    runs, results = other_operations("runs"), other_operations("results")
    assert "CREATE SEQUENCE" in str(runs.first[0].sql)
    assert not runs.last
    assert any("PARTITION BY" in str(operation.sql) for operation in results.last)
    assert all(isinstance(operation, RunSQL) for operation in (*runs.first, *results.last))
