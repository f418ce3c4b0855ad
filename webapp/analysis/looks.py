"""The p-value at which a comparison may be decided when somebody looks at it after every repeat.

Whoever looks at p < 5 % after each of 13 repeats finds a difference that does not exist on most pages. With Pocock's
boundary each look uses the same smaller p-value, so that all looks together reach the wanted one (S. J. Pocock: Group
sequential methods in the design and analysis of clinical trials, Biometrika 64, 1977; the recursion: P. Armitage,
C. K. McPherson, B. C. Rowe: Repeated significance tests on accumulating data, Journal of the Royal Statistical Society
A 132, 1969).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

_NODES = 48  # of the quadrature over the values that are not decided yet
_HIGHEST = 9.0  # the boundary is below so many standard errors


@dataclass(frozen=True)
class Looks:
    """A look after each repeat from the `first` to the `last` one, at most."""

    first: int
    last: int

    def level(self, alpha: float) -> float:
        """The two-sided p-value for each look whose chance to be reached at any of them is `alpha`."""
        return _level(alpha, self.first, max(self.first, self.last))


ONE_LOOK = Looks(1, 1)  # at the end


@lru_cache(maxsize=4096)
def _level(alpha: float, first: int, last: int) -> float:
    if first == last:
        return alpha
    boundary = brentq(lambda z: _chance(z, first, last) - alpha, _quantile(alpha), _HIGHEST, xtol=1e-4)
    return float(2 * ndtr(-boundary))


def _quantile(alpha: float) -> float:
    """The boundary of a single look."""
    return float(brentq(lambda z: 2 * ndtr(-z) - alpha, 0.0, _HIGHEST, xtol=1e-6))


def _chance(boundary: float, first: int, last: int) -> float:
    """That a sum of standard normal values is, after any number of them from `first` to `last`, farther from 0 than
    `boundary` standard errors."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    limit = boundary * math.sqrt(first)
    at = limit * nodes
    inside: NDArray[np.float64] = weights * limit * _density(at / math.sqrt(first)) / math.sqrt(first)
    for count in range(first + 1, last + 1):
        limit = boundary * math.sqrt(count)
        reached = limit * nodes
        inside = weights * limit * (_density(reached[:, None] - at[None, :]) @ inside)
        at = reached
    return 1.0 - float(inside.sum())


def _density(values: NDArray[np.float64]) -> NDArray[np.float64]:
    density: NDArray[np.float64] = np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)
    return density
