"""A response surface: what is known about a metric at every combination of levels after some of them were measured.

A Gaussian process on ln(value) over the full grid. Its covariance is that of a functional analysis of variance: a
constant, effects of the factors, and interactions of every order (N. Durrande, D. Ginsbourger, O. Roustant and L.
Carraro: ANOVA kernels and RKHS of zero mean functions for model-based sensitivity analysis, J. Multivariate Analysis
115, 2013):

    k(x, x') = s² Π_f (1 + a_f K_f(x_f, x'_f)) + r² [x = x'] + b² [same batch] + n² [same trial]

`a_f` is the relevance of a factor. K_f is a Matérn 3/2 correlation over the places of ordered levels and the identity
over the others, centred over the levels. r² is what no smooth surface explains, for example a cliff. The parameters
have wide log-normal priors; sets of them are drawn around the most probable one (Laplace's approximation, C. Rasmussen
and C. Williams: Gaussian Processes for Machine Learning, 2006, chapter 5).

The grid is a product, so draws of the surface before the measurements need only the roots of the K_f. A draw after the
measurements is such a draw plus a correction (Matheron's rule, J. Wilson et al.: Efficiently sampling functions from
Gaussian process posteriors, ICML 2020).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]

FITTED = 300  # measurements that estimate the parameters, at most: the time grows with their cube
SETS = 3  # of parameters
ITERATIONS, STEP = 60, 0.01  # of the optimiser; of finite differences
JITTER = 1e-8  # of the diagonal is added to it, so that rounding leaves the matrix positive definite


@dataclass(frozen=True)
class Factor:
    """`places` of its levels, in order, on any scale with a meaning (log2 of a depth); () for names without an order.
    Changing a `costly` factor takes long (a layout, mkfs)."""

    name: str
    levels: int
    places: tuple[float, ...] = ()
    costly: bool = False


# ln of each parameter before any measurement, as mean and standard deviation. Values have a standard deviation of 1.
_COMMON = ((math.log(0.5), 1.5), (math.log(0.1), 1.0), (math.log(0.02), 1.0), (math.log(0.1), 1.0))  # s, r, b, n
_OF_FACTOR = ((math.log(0.5), 1.5), (math.log(0.7), 0.7))  # relevance; length, where all levels span 1


class Surface:
    """`points`: flat numbers of the measured combinations, in C order of the factors' levels; `batches`: in which each
    was measured; `values`: ln of the results. All of one length, at least 2."""

    def __init__(self, factors: Sequence[Factor], points: Whole, batches: Whole, values: Numbers) -> None:
        self._mean = float(values.mean())
        self._scale = max(float(values.std()), 1e-6)
        standard = (values - self._mean) / self._scale
        some = np.random.default_rng(0).permutation(len(points))[:FITTED]
        self._sets = Likelihood(factors, points[some], batches[some], standard[some]).parameter_sets()
        self._likelihood = Likelihood(factors, points, batches, standard)

    @cached_property
    def _fits(self) -> list["_Fit"]:
        return [_Fit(self._likelihood, parameters) for parameters in self._sets]

    @property
    def noise(self) -> float:
        """Relative standard deviation of one trial."""
        return float(np.exp(self._sets[0][3]) * self._scale)

    def mean(self) -> Numbers:
        """Expected ln(value) at every combination."""
        expected: Numbers = np.mean([fit.mean() for fit in self._fits], 0)
        return self._mean + self._scale * expected

    def draws(self, count: int, chance: np.random.Generator) -> Numbers:
        """`count` surfaces that agree with the measurements: ln(value), combinations × count."""
        counts = np.bincount(np.arange(count) % SETS, minlength=SETS)
        drawn = np.concatenate([fit.draws(some, chance) for fit, some in zip(self._fits, counts, strict=True)], 1)
        shuffled: Numbers = drawn[:, chance.permutation(count)]
        return self._mean + self._scale * shuffled


class _Fit:
    """The surface with one set of parameters, of standardised values."""

    def __init__(self, likelihood: "Likelihood", parameters: Numbers) -> None:
        self._of = likelihood
        self._surface, self._rest, self._batch, self._noise = np.exp(parameters[:4])
        self._kernels = [1 + kernel for kernel, _ in likelihood.kernels(parameters)]
        self._root = likelihood.root(parameters)

    def mean(self) -> Numbers:
        expected: Numbers = self._across(cho_solve((self._root, True), self._of.values[:, None]))[:, 0]
        return expected

    def draws(self, count: int, chance: np.random.Generator) -> Numbers:
        shape = math.prod(map(len, self._kernels)), count
        roots = [_root_of(kernel) for kernel in self._kernels]
        before = self._surface * _along_axes(roots, chance.standard_normal(shape))
        before += self._rest * chance.standard_normal(shape)
        shared = self._batch * chance.standard_normal((int(self._of.batches.max()) + 1, count))[self._of.batches]
        noise = self._noise * chance.standard_normal((len(self._of.points), count))
        off = self._of.values[:, None] - before[self._of.points] - shared - noise
        drawn: Numbers = before + self._across(cho_solve((self._root, True), off))
        return drawn

    def _across(self, weights: Numbers) -> Numbers:
        """Covariance of every combination with the measurements, times `weights`: measurements × count."""
        grid = np.zeros((math.prod(map(len, self._kernels)), weights.shape[1]))
        np.add.at(grid, self._of.points, weights)
        covariance: Numbers = self._surface**2 * _along_axes(self._kernels, grid) + self._rest**2 * grid
        return covariance


def _along_axes(matrices: Sequence[Numbers], grid: Numbers) -> Numbers:
    """Multiply each axis of the grid by its matrix. `grid`: combinations × count."""
    shaped = grid.reshape([*map(len, matrices), -1])
    for axis, matrix in enumerate(matrices):
        shaped = np.moveaxis(np.tensordot(matrix, shaped, (1, axis)), 0, axis)
    return shaped.reshape(grid.shape)


def _root_of(kernel: Numbers) -> Numbers:
    values, vectors = np.linalg.eigh(kernel)
    root: Numbers = vectors * np.sqrt(np.maximum(values, 0))
    return root


class Likelihood:
    """Of measurements, given ln of the parameters: s, r, b, n, then relevance and length of each factor."""

    def __init__(self, factors: Sequence[Factor], points: Whole, batches: Whole, values: Numbers) -> None:
        self.points, self.values = points, values
        self.batches = np.unique(batches, return_inverse=True)[1]
        self.priors = np.array([*_COMMON, *_OF_FACTOR * len(factors)])
        self._factors = factors
        self._levels = np.unravel_index(points, [factor.levels for factor in factors])
        self._level_tables = [np.eye(factor.levels)[level] for factor, level in zip(factors, self._levels, strict=True)]
        self._same_point = (points[:, None] == points).astype(float)
        self._same_batch = (batches[:, None] == batches).astype(float)

    def parameter_sets(self) -> list[Numbers]:
        """The most probable one first; the others are drawn around it."""
        means, deviations = self.priors.T
        low, high = means - 3 * deviations, means + 3 * deviations
        likely = minimize(self.loss, means, jac=True, method="L-BFGS-B", bounds=np.array([low, high]).T,
                          options={"maxiter": ITERATIONS}).x  # fmt: skip
        steps = STEP * np.eye(len(likely))
        curvature = np.array([self.loss(likely + step)[1] - self.loss(likely - step)[1] for step in steps]) / (2 * STEP)
        values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
        spread = vectors / np.sqrt(np.maximum(values, 1 / deviations.max() ** 2))  # at most that of a prior
        drawn = likely + np.random.default_rng(0).standard_normal((SETS - 1, len(likely))) @ spread.T
        return [likely, *np.clip(drawn, low, high)]

    def kernels(self, parameters: Numbers) -> list[tuple[Numbers, Numbers]]:
        """a_f K_f of each factor and its derivative by ln(length): levels × levels."""
        scales = np.exp(parameters[4:]).reshape(-1, 2)
        correlations = [_correlation(factor, length) for factor, (_, length) in zip(self._factors, scales, strict=True)]
        return [
            (relevance * kernel, relevance * by_length)
            for (relevance, _), (kernel, by_length) in zip(scales, correlations, strict=True)
        ]

    def root(self, parameters: Numbers) -> Numbers:
        """Cholesky factor of the covariance of the measurements."""
        return self._covariance(parameters, self._gathered(self.kernels(parameters)))[1]

    def _gathered(self, kernels: Sequence[tuple[Numbers, Numbers]]) -> list[Numbers]:
        """1 + a_f K_f between the measurements."""
        pairs = zip(kernels, self._levels, strict=True)
        return [(1 + kernel)[np.ix_(levels, levels)] for (kernel, _), levels in pairs]

    def _covariance(self, parameters: Numbers, gathered: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
        """The part that the factors explain, and the Cholesky factor of the whole."""
        surface, rest, batch, noise = np.exp(2 * parameters[:4])
        explained: Numbers = math.prod(gathered, start=surface)
        covariance = explained + rest * self._same_point + batch * self._same_batch
        covariance.flat[:: len(covariance) + 1] += noise + JITTER * (1 + np.diag(explained).mean())
        return explained, cholesky(covariance, lower=True)

    def loss(self, parameters: Numbers) -> tuple[float, Numbers]:
        """-ln(likelihood × priors) and its gradient."""
        kernels = self.kernels(parameters)
        gathered = self._gathered(kernels)
        explained, root = self._covariance(parameters, gathered)
        inverse_root = solve_triangular(root, np.eye(len(root)), lower=True)
        inverse = inverse_root.T @ inverse_root
        weights = inverse @ self.values
        slope = inverse - np.outer(weights, weights)  # twice the derivative of the loss by the covariance
        surface, rest, batch, noise = np.exp(2 * parameters[:4])
        gradient = [
            np.vdot(slope, explained),
            rest * np.vdot(slope, self._same_point),
            batch * np.vdot(slope, self._same_batch),
            noise * np.trace(slope),
        ]
        for place, (kernel, by_length) in enumerate(kernels):
            others = math.prod(gathered[:place] + gathered[place + 1 :], start=surface * slope)
            by_kernel = self._level_tables[place].T @ others @ self._level_tables[place]  # levels × levels
            gradient += [np.vdot(by_kernel, kernel) / 2, np.vdot(by_kernel, by_length) / 2]
        means, deviations = self.priors.T
        distance = (parameters - means) / deviations
        loss = self.values @ weights / 2 + np.log(np.diag(root)).sum() + distance @ distance / 2
        return float(loss), np.array(gradient) + distance / deviations


def _correlation(factor: Factor, length: float) -> tuple[Numbers, Numbers]:
    """Centred correlation of the levels with a mean variance of 1, and its derivative by ln(length)."""
    count = factor.levels
    if count == 1:
        return np.zeros((1, 1)), np.zeros((1, 1))
    kernel, by_length = np.eye(count), np.zeros((count, count))
    if factor.places:
        places = np.array(factor.places)
        distance = np.abs(places[:, None] - places) * math.sqrt(3) / (np.ptp(places) * length)
        kernel, by_length = (1 + distance) * np.exp(-distance), distance**2 * np.exp(-distance)
    kernel, by_length = _centred(kernel), _centred(by_length)
    variance, change = np.trace(kernel) / count, np.trace(by_length) / count
    return kernel / variance, (by_length - kernel * change / variance) / variance


def _centred(matrix: Numbers) -> Numbers:
    centred: Numbers = matrix - matrix.mean(0) - matrix.mean(1)[:, None] + matrix.mean()
    return centred
