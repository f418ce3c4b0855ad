"""Number the attempts in the order of their creation; until now their times told it."""

from django.db import migrations, models

import webapp.runs.models.attempt

NUMBER_EXISTING = """
UPDATE runs_attempt SET sequence = ordered.place
FROM (
    SELECT id, (SELECT max(sequence) FROM runs_attempt) + row_number() OVER (ORDER BY created_at, id) AS place
    FROM runs_attempt
) ordered
WHERE ordered.id = runs_attempt.id;
SELECT setval('runs_attempt_sequence', (SELECT max(sequence) FROM runs_attempt))
WHERE EXISTS (SELECT FROM runs_attempt);
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]

    operations = [
        migrations.RunSQL("CREATE SEQUENCE runs_attempt_sequence", "DROP SEQUENCE runs_attempt_sequence"),
        migrations.AddField(
            model_name="attempt",
            name="sequence",
            field=models.BigIntegerField(
                db_default=webapp.runs.models.attempt.NextInSequence(), editable=False, unique=True
            ),
        ),
        migrations.RunSQL(NUMBER_EXISTING, migrations.RunSQL.noop),
        migrations.AlterModelOptions(name="attempt", options={"ordering": ["sequence"]}),
    ]
