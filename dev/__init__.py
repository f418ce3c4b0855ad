"""Development tools: the demo, tests, checks, benchmarks and fault injection. See dev/README.md.

Production code in webapp/ and worker/ does not import this package.
"""
