from django.apps import AppConfig


class TrendsConfig(AppConfig):
    name = "webapp.trends"
    default_auto_field = "django.db.models.BigAutoField"
