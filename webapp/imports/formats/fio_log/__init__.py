"""fio's logs: bw, iops, lat and clat (`series`), slat (`submission`), and histograms (`HistogramSum`).

A log belongs to a trial and says neither which nor what it measures: its name does (`log_name`).
"""

from webapp.imports.formats.fio_log.rows import Histograms, HistogramSum, sniff
from webapp.imports.formats.fio_log.series import Kind, Log, LogName, log_name, series, submission

__all__ = ["HistogramSum", "Histograms", "Kind", "Log", "LogName", "log_name", "series", "sniff", "submission"]
