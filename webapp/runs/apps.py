from importlib import import_module

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "webapp.runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import_module("webapp.runs.renaming")  # importing it listens to `renamed`
