from django.apps import AppConfig


class PlansConfig(AppConfig):
    name = "webapp.plans"
    default_auto_field = "django.db.models.BigAutoField"
