"""`make lab`: a storage server of its own under QEMU, and the storage suite in it.

`image` builds its disk from Debian's packages, `machine` boots it, `suite` and `sweep` work in it.
"""
