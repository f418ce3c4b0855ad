from importlib import import_module

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "webapp.notices"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import_module("webapp.notices.services")  # importing it listens to `anonymised`
