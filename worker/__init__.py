"""The Sweetspot worker: runs on storage servers, needs no Django and no database."""

__version__ = "0.1.0"
