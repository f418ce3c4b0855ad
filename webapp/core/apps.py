from importlib import import_module

from django.apps import AppConfig

from webapp.core.row_arrays import register_row_arrays


class CoreConfig(AppConfig):
    name = "webapp.core"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import_module("webapp.core.checks")  # importing it registers the checks
        register_row_arrays()
