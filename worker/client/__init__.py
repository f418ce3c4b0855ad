"""The command `sweetspot`: a client of the server's API for laptops and CI.

Needs nothing but Python's standard library. It is a wheel of its own, in which this folder is the package `sweetspot`,
so its modules import each other relatively and nothing else of the worker.
"""

__version__ = "0.1.0"
