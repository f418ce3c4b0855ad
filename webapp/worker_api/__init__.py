"""The HTTP interface for workers: downloads, enrolment, registration, token renewal and reports."""
