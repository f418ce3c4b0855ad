"""fio job files -> plans. `read_job_file` is all that others use."""

from webapp.plans.jobfile.lines import JobFileError, JobProblem
from webapp.plans.jobfile.reader import read_job_file

__all__ = ["JobFileError", "JobProblem", "read_job_file"]
