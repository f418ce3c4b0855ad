"""Values of a standing."""

from webapp.analysis.cells import Measured


def a_value(*values: float, run: int = 1) -> Measured:
    """Repeats of one run."""
    blocks = {(run, repeat): value for repeat, value in enumerate(values, start=1)}
    return Measured(blocks, dict.fromkeys(blocks, 0.0), 0.0, balanced=True)
