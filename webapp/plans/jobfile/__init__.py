"""Converts fio job files to plans and back."""

from webapp.plans.jobfile.lines import MAX_FILES, JobFileError, JobProblem
from webapp.plans.jobfile.reader import read_job_file
from webapp.plans.jobfile.writer import parts_unfit_for_job_files, write_job_file

__all__ = ["MAX_FILES", "JobFileError", "JobProblem", "parts_unfit_for_job_files", "read_job_file", "write_job_file"]
