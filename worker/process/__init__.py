"""Child programs that cannot outlive the worker. Each runs in a scope, under a supervisor, with limits."""
