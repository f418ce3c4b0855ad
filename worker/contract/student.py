"""Quantiles of Student's t distribution. The worker has no SciPy."""

from math import expm1, pi, sqrt, tan
from statistics import NormalDist


def student_t(probability: float, freedom: float) -> float:
    """The value below which the share `probability`, over 0.5, lies, for `freedom` degrees of freedom, 1 or more.

    G. W. Hill, "Algorithm 396: Student's t-quantiles", Communications of the ACM 13 (10), 1970. The error is below
    0.1 % from 2 degrees of freedom, and below 6 % between 1 and 2.
    """
    n, tails = freedom, 2 * (1 - probability)
    if n == 1:
        return 1 / tan(tails * pi / 2)
    if n == 2:
        return sqrt(2 / (tails * (2 - tails)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * sqrt(a * pi / 2) * n
    y = (d * tails) ** (2 / n)
    if y > 0.05 + a:
        return sqrt(n * _from_normal(NormalDist().inv_cdf(tails / 2), n, (a, b, c, d)))
    inner = 1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)
    return sqrt(n * ((inner * y - 1) * (n + 1) / (n + 2) + 1 / y))


def _from_normal(x: float, n: float, terms: tuple[float, float, float, float]) -> float:
    """Asymptotic inverse expansion about the normal distribution."""
    a, b, c, d = terms
    y = x**2
    if n < 5:
        c += 0.3 * (n - 4.5) * (x + 0.6)
    c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    return expm1(a * y**2)
