"""Build layouts on drives and take them down, under the guard.

    policy's drives ─► guard (destroyable, armed, unused) ─► journal ─► commands ─► device or mounted directory
    journal ─► still the worker's? ─► commands, from the top down ─► blank drives ─► dropped from the journal

The journal contains a layout from before its first command until its drives are verified to be blank, so a worker that
was killed takes the layout down at its next start. Every part that the worker creates has the layout's key in it (array
name, volume group, label, id of the partition table). Nothing without the key is changed.
"""
