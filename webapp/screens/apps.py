from django.apps import AppConfig


class ScreensConfig(AppConfig):
    name = "webapp.screens"
    default_auto_field = "django.db.models.BigAutoField"
