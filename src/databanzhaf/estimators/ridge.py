"""What the fits of `regression` and `size_regression` share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from databanzhaf.evaluations import Evaluations
from databanzhaf.protocols import FloatArray

# A fit inverts a matrix of this many rows at most (3.2 GB; the matrix itself is kept too).
LARGEST = 20_000
# With fewer samples than players it keeps their coalitions: this many bytes at most.
LARGEST_KEPT = 2 * 10**9
# Up to here five parts of the samples choose each other's penalty, then two.
SMALL = 4_000
# Shares of the variance that the penalty may take the fit to explain: they keep leverages below 1.
SHARES = 0.001, 0.999


def fits_in_memory(n_players: int, samples: int, largest: int = LARGEST) -> bool:
    return min(n_players, samples) <= largest and (
        samples >= n_players or samples * n_players <= LARGEST_KEPT
    )


def inverse_of(gram: FloatArray, penalty: FloatArray | float) -> FloatArray:
    """Of a Gram matrix with a penalty on its diagonal."""
    from scipy.linalg import lapack

    matrix = gram.copy(order="F")
    matrix[np.diag_indices_from(matrix)] += penalty
    factor, failed = lapack.dpotrf(matrix, lower=True, overwrite_a=True)
    inverse: FloatArray
    inverse, _ = lapack.dpotri(factor, lower=True, overwrite_c=True)
    if failed:  # a penalty of n / 1000 or more keeps it positive
        raise ArithmeticError("the Gram matrix is not positive definite")
    step = 512
    for low in range(0, len(inverse), step):
        rows = slice(low, low + step)
        inverse[rows, low + step :] = inverse[low + step :, rows].T
        corner = np.tril(inverse[rows, rows])
        inverse[rows, rows] = corner + np.tril(corner, -1).T
    return inverse


def noise_share(samples: Evaluations, unit: float = 1.0) -> float:
    """Share of the variance of the averaged utilities that is training noise, in units in which
    squares are numbers; NaN if unknown.
    """
    samples = replace(samples, utilities=samples.utilities / unit)
    total = float(samples.utility.var(ddof=1))
    share = float(samples.noise_variance().mean()) / total if total > 0 else float("nan")
    return 1.0 if share > 1 else share
