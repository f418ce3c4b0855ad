from importlib import import_module

from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    name = "webapp.schedules"

    def ready(self) -> None:
        import_module("webapp.schedules.arming")  # importing it listens to `lost_rights`
