"""The log format of every process of the server: Django, Celery, and gunicorn, which reads it before Django starts."""

from typing import Any

from webapp.settings import environment as env

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"about": {"()": "webapp.core.logs.AboutFilter"}},
    "formatters": {
        "plain": {
            "class": "webapp.core.logs.PlainFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s%(about)s: %(message)s",
        },
        "json": {"()": "webapp.core.logs.JsonFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": env.choice("SWEETSPOT_LOG_FORMAT", "plain", "json"),
            "filters": ["about"],
        }
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    # Two lines and more for each of the periodic tasks, every few seconds.
    "loggers": {name: {"level": "WARNING"} for name in ("celery.beat", "celery.worker.strategy", "celery.app.trace")},
}
