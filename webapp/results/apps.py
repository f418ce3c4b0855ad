from django.apps import AppConfig


class ResultsConfig(AppConfig):
    name = "webapp.results"
    default_auto_field = "django.db.models.BigAutoField"
