from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0004_people_who_left"),
    ]

    operations = [
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("name", models.CharField(max_length=60, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
            ],
        ),
    ]
