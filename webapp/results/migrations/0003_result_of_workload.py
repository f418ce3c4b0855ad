from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("results", "0002_partition_samples")]

    operations = [
        migrations.AddIndex(
            model_name="result",
            index=models.Index(
                fields=["point_key", "target", "id"], name="result_of_workload", condition=Q(invalid=False)
            ),
        ),
    ]
