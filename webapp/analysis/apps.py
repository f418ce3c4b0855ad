from django.apps import AppConfig


class AnalysisConfig(AppConfig):
    name = "webapp.analysis"
    label = "compare"  # of its tables
    default_auto_field = "django.db.models.BigAutoField"
