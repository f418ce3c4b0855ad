"""State, write counters, write limits and purging of drives."""
