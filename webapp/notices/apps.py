from importlib import import_module

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "webapp.notices"

    def ready(self) -> None:
        import_module("webapp.notices.services")  # importing it listens to `anonymised`
