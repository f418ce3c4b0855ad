"""Reading the machine: sysfs, mounts, processes, counters, PCI, signatures, and small files of the worker."""
