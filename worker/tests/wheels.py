"""Builds a wheel from a source folder, as a release does."""

import shutil
import subprocess
import sys
from pathlib import Path


def built_wheel(source: Path, place: Path) -> Path:
    """From a copy in `place`: setuptools leaves its working files beside the source."""
    ignore = shutil.ignore_patterns("__pycache__", "tests", "build", "*.egg-info")
    shutil.copytree(source, place / source.name, ignore=ignore)
    options = ("--wheel", "--no-isolation", "--outdir", str(place))
    command = (sys.executable, "-m", "build", *options, str(place / source.name))
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    (wheel,) = place.glob("*.whl")
    return wheel
