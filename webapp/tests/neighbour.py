"""Runs a program as if it were built for other versions of the contract: neighbour.py OLDEST NEWEST MODULE ARGUMENTS…

The versions are set before anything else of ours is imported, so all of it is of those versions.
"""

import runpy
import sys

import worker.contract.base as base

if __name__ == "__main__":
    base.OLDEST_UNDERSTOOD, base.CONTRACT_VERSION = int(sys.argv[1]), int(sys.argv[2])
    module, sys.argv = sys.argv[3], sys.argv[3:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
