"""`make torture`: a campaign of faults over a whole private Sweetspot, and a look at what is left afterwards.

    deal      which faults, when: a pure function of seed and number
    kinds     one function a kind: do it, hold it, take it back
    world     PostgreSQL, Redis, web tier, tasks, beat, hosts with worker, loop device and small disks
    network   a bridge and one network namespace a host; relay: what lies between a host and the server
    watchman  starts again what has died, as a service manager would
    witness   what is really there: sysfs, /proc, files and SQL, never the product's own functions
    campaign  rounds: start a run, let faults happen to it, wait for its end, look

The campaign lives in network, mount and process namespaces of its own: when it ends, however it ends, its
processes, networks and mounts are gone, and the process outside gives back loop devices and removes its data.
"""
