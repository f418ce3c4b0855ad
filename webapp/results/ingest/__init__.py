"""Write a worker's report to rows, exactly once and in order: parse ─► lock ─► apply ─► write, called by `report`."""
