"""Fault injection into a complete private installation, with a check of its invariants after each round.

The campaign runs in its own network, mount and process namespaces. When it ends, for any reason, the kernel removes its
processes, networks and mounts; the process outside detaches loop devices and deletes the data. dev/README.md lists the
modules.
"""
