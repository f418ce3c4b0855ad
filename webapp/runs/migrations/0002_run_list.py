from django.db import migrations, models
from django.db.models import F


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(F("ended_at").desc(nulls_first=True), F("number").desc(), name="run_list"),
        ),
    ]
