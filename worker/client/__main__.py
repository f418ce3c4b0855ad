"""`python -m sweetspot` is `sweetspot`."""

import sys

from .main import main

sys.exit(main())
