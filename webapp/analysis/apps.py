from importlib import import_module

from django.apps import AppConfig


class AnalysisConfig(AppConfig):
    name = "webapp.analysis"
    label = "compare"  # of its tables
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import_module("webapp.analysis.services")  # importing it listens to `lost_rights`
        import_module("webapp.analysis.deciding")  # to `results_written`
