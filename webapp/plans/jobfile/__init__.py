"""Converts fio job files to plans and back. The interface is `read_job_file` and `write_job_file`."""

from webapp.plans.jobfile.lines import JobFileError, JobProblem
from webapp.plans.jobfile.reader import read_job_file
from webapp.plans.jobfile.writer import write_job_file

__all__ = ["JobFileError", "JobProblem", "read_job_file", "write_job_file"]
