"""Quantiles and tails of the distributions that intervals rest on.

From scipy.special, not scipy.stats: to import that takes longer than to judge a small record, and
each call of it a hundred times as long.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special


def normal(p: float) -> float:
    """The standard normal quantile at ``p``."""
    return float(special.ndtri(p))


def student(p: float, df: float) -> float:
    """Student's quantile at ``p`` of ``df`` degrees of freedom; ``df`` may be a fraction."""
    return float(special.stdtrit(df, p))


def students(p: float, df: NDArray[np.number]) -> NDArray[np.float64]:
    """The same for each of ``df``."""
    return np.asarray(special.stdtrit(df.astype(np.float64), p), np.float64)


def student_tails(t: float, df: float) -> float:
    """The chance that Student's t is farther from 0 than ``t``, on either side."""
    return float(2 * special.stdtr(df, -abs(t)))


def noncentral_student(p: float, df: float, shift: float) -> float:
    """The quantile at ``p`` of the noncentral t: of (Z + ``shift``) / sqrt(chi-square / df)."""
    return float(special.nctdtrit(df, shift, p))


def beta(p: float, a: float, b: float) -> float:
    """The quantile at ``p`` of the beta distribution."""
    return float(special.betaincinv(a, b, p))


def share_at_least(tail: float, x: float, n: float) -> float:
    """The exact lower limit of a share of which ``x`` of ``n`` were seen: a smaller one would show
    so many in less than ``tail`` of cases (Clopper and Pearson 1934). Both may be fractions.
    """
    return beta(tail, x, n - x + 1) if x > 0 else 0.0


def share_at_most(tail: float, x: float, n: float) -> float:
    """The exact upper limit, as ``share_at_least`` is the lower one."""
    return beta(1 - tail, x + 1, n - x) if x < n else 1.0


def f_quantile(p: float, df: float, beside: float) -> float:
    """The quantile at ``p`` of F with ``df`` and ``beside`` degrees of freedom."""
    return float(special.fdtri(df, beside, p))


def chi_square(p: float, df: float) -> float:
    """The quantile at ``p`` of chi-square with ``df`` degrees of freedom."""
    return float(special.chdtri(df, 1 - p))


def binomial(p: float, n: int, share: float) -> int:
    """The least k with P(k or fewer of ``n``) at least ``p``; -1 where ``p`` is 0."""
    if p <= 0:
        return -1
    if p >= 1:
        return n
    k = math.ceil(special.bdtrik(p, n, share))
    return k - 1 if k > 0 and special.bdtr(k - 1, n, share) >= p else k


def more_often(x: int, n: int, y: int, m: int) -> float:
    """The chance of ``y`` or more of ``m`` if ``x + y`` of all ``n + m`` are dealt at random:
    Fisher's exact test, one-sided. 1 where either side is empty.
    """
    k = x + y
    ways = sum(math.comb(m, i) * math.comb(n, k - i) for i in range(y, min(k, m) + 1))
    return ways / math.comb(n + m, k) if n and m else 1.0
