"""Django's backend for PostgreSQL, with a cheaper check of a kept connection."""
