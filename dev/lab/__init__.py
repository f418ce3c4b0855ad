"""`make lab`: a virtual storage server under QEMU, and tests of the worker and the whole system on it."""
