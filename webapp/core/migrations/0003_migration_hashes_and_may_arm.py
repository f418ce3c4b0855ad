from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0002_change")]

    operations = [
        migrations.CreateModel(
            name="MigrationHash",
            fields=[
                ("migration", models.CharField(max_length=300, primary_key=True, serialize=False)),
                ("sha256", models.CharField(max_length=64)),
            ],
        ),
        migrations.AddField(model_name="apitoken", name="may_arm", field=models.BooleanField(default=False)),
    ]
