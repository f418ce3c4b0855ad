from collections import Counter, defaultdict

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

ROUNDS = 4  # of the searches that ended before this migration


def mark_final_rounds(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """The final rounds are the last batch of a target, and the only one that has each of its points four times."""
    runs, trials = apps.get_model("runs", "Run"), apps.get_model("runs", "Trial")
    for run in runs.objects.filter(budget__isnull=False):
        batches = defaultdict(Counter)
        for target, batch, point in trials.objects.filter(run=run).values_list("target", "batch", "point_key"):
            batches[target, batch][point] += 1
        for (target, batch), counts in batches.items():
            if set(counts.values()) == {ROUNDS}:
                trials.objects.filter(run=run, target=target, batch=batch).update(is_final=True)


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_searches")]

    operations = [
        migrations.AddField("run", "budget_s", models.PositiveIntegerField(null=True)),
        migrations.AddField("trial", "is_final", models.BooleanField(default=False)),
        migrations.RunPython(mark_final_rounds, migrations.RunPython.noop, elidable=True),
    ]
