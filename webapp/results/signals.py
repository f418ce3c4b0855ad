"""What happened to results, for the apps above."""

from django.dispatch import Signal

results_written = Signal()  # run_id, host_id; sent after the commit of a trial's results
