from django.apps import AppConfig


class StorageConfig(AppConfig):
    name = "webapp.storage"
    default_auto_field = "django.db.models.BigAutoField"
