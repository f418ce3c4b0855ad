#!/usr/bin/env python3
"""Django's command line. In a checkout whose demo runs, without other settings, its commands use the demo."""

import os
import sys
from contextlib import suppress


def main() -> None:
    if "SWEETSPOT_SECRET_KEY" not in os.environ:
        _take_settings_of_the_demo()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.base")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


def _take_settings_of_the_demo() -> None:
    with suppress(ImportError):  # an installed server has no development tools
        from dev.stack import services
        from dev.stack.state import default_state

        state = default_state("demo")
        if state.exists:
            os.environ.update(services.environment(state))
            print("Using the database of the demo.", file=sys.stderr)


if __name__ == "__main__":
    main()
