"""`python -m worker` is `sweetspot-worker`."""

import sys

from worker.cli import main

sys.exit(main())
