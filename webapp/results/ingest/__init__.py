"""From a worker's report to rows, exactly once and in order: parse ─► lock ─► apply ─► write, led by `report`."""
