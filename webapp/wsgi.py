"""What gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from webapp.core.checks import require_safe_settings
from webapp.core.garbage_collector import configure_garbage_collector
from worker.contract.base import examine_types

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.base")
application = get_wsgi_application()
require_safe_settings()
get_resolver().url_patterns  # noqa: B018 - loads all views, so that the first request need not
examine_types()
configure_garbage_collector()
