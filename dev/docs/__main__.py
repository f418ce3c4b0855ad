"""`make docs`: build the site into .build/site/docs. A broken link ends it with status 1."""

import logging
import os
import sys
from pathlib import Path

import django
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

CONFIGURATION = Path(__file__).parent / "mkdocs.yml"
# The server's code is imported for its tables. It connects to nothing.
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "webapp.settings.base",
    "SWEETSPOT_SECRET_KEY": "long enough for Django, and of no use to anybody: building documents only",
    "SWEETSPOT_DATABASE_URL": "postgres://nobody@/nothing?host=/nonexistent",
    "SWEETSPOT_REDIS_URL": "redis://nobody:nothing@127.0.0.1:1/0",
}


def main() -> int:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    django.setup()
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    configuration = load_config(str(CONFIGURATION), strict=True)
    try:
        build(configuration)
    except Abort as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"Documentation: {configuration.site_dir}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
