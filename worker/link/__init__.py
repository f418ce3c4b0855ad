"""The connection to the server: orders come through Celery, reports go by HTTP, batches wait on disk."""
