from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=60)),
                ("number", models.BigIntegerField()),
            ],
            options={"indexes": [models.Index(fields=["scope"], include=["number"], name="change_of_scope")]},
        ),
    ]
