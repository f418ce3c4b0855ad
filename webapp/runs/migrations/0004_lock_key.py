from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0003_actions"),
    ]

    operations = [
        migrations.RenameField(
            model_name="targetlock",
            old_name="lock_group",
            new_name="lock_key",
        ),
    ]
