"""fio as a child process: `stream` reads it, `difference` makes samples, `watch` limits it, `leg` puts it together."""
