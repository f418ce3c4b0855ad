"""Django without a database or a broker, for tools that only use the server's code and tables in memory."""

import os

ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "webapp.settings.base",
    "SWEETSPOT_SECRET_KEY": "long enough for Django, and of no use to anybody: nothing is served with it",
    "SWEETSPOT_DATABASE_URL": "postgres://nobody@/nothing?host=/nonexistent",
    "SWEETSPOT_REDIS_URL": "redis://nobody:nothing@127.0.0.1:1/0",
    "SWEETSPOT_HTTPS": "0",
}


def set_up_without_database() -> None:
    """Set up Django in this process; settings that the environment already has are kept."""
    import django

    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    django.setup()
