"""fio as a child process: `output` reads it, `difference` makes samples, `watch` limits it, `stream` runs it."""
