from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("hosts", "0008_host_health"),
    ]

    operations = [
        migrations.AddField(
            model_name="target",
            name="lock_keys",
            field=models.JSONField(default=list),
        ),
        # until the host's next greeting says more
        migrations.RunSQL("update hosts_target set lock_keys = jsonb_build_array(lock_group)", migrations.RunSQL.noop),
        migrations.RemoveField(
            model_name="target",
            name="lock_group",
        ),
    ]
