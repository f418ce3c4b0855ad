"""What gunicorn serves."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from webapp.core.checks import require_safe_settings
from worker.contract.base import examine_types

YOUNG_OBJECTS = 10_000  # new objects before a collection; Python's default of 700 is reached by a few table rows

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.base")
application = get_wsgi_application()
require_safe_settings()
get_resolver().url_patterns  # noqa: B018 - loads all views, so that the first request need not
examine_types()
# A collection skips the objects that exist now: a full one of them would take longer than most pages.
gc.collect()
gc.freeze()
gc.set_threshold(YOUNG_OBJECTS)
