"""Make the table of samples a partitioned one. Django creates it as a plain table; the columns stay named there only."""

from django.db import migrations

from webapp.results.retention import create_partitions

PARTITION = """
ALTER TABLE results_sample RENAME TO results_sample_plain;
CREATE TABLE results_sample (LIKE results_sample_plain INCLUDING CONSTRAINTS) PARTITION BY RANGE (day);
ALTER TABLE results_sample ADD PRIMARY KEY (attempt_id, stream, offset_ms, direction, day);
DROP TABLE results_sample_plain;
"""


def first_partitions(apps: object, schema_editor: object) -> None:  # noqa: ARG001 - Django gives them
    create_partitions()


class Migration(migrations.Migration):
    dependencies = [("results", "0001_initial")]

    operations = [
        migrations.RunSQL(PARTITION, migrations.RunSQL.noop),
        migrations.RunPython(first_partitions, migrations.RunPython.noop),
    ]
