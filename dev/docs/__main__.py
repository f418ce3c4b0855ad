"""`make docs`: build the site into .build/site/docs. A broken link ends it with status 1."""

import logging
import sys
from pathlib import Path

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from dev.django_setup import set_up_without_database

CONFIGURATION = Path(__file__).parent / "mkdocs.yml"


def main() -> int:
    set_up_without_database()
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
