from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_run_list")]

    operations = [
        migrations.AddField("run", "budget", models.PositiveIntegerField(null=True)),
        migrations.AddField("trial", "batch", models.PositiveIntegerField(null=True)),
    ]
