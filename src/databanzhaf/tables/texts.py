"""Columns of free text into numbers: n-grams, TF-IDF, truncated SVD."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.blas import one_blas_thread
from databanzhaf.protocols import FloatArray

if TYPE_CHECKING:
    import pandas as pd

# Free text has so many words in half of its cells, or so many characters.
WORDS, CHARACTERS = 3, 200
# A word is what stands between spaces and has two letters in a row, so that codes, dates and
# numbers have none. Where words are written without spaces, two Chinese characters count as one,
# or five of Japanese kana, Thai, Lao, Burmese and Khmer.
_WORD = re.compile(r"\S*[^\W\d_]{2}\S*")
_UNSPACED = re.compile(
    "[\u3400-\u9fff\uf900-\ufaff]{2}|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff]{5}"
)
# Texts that are looked at to tell free text, spread evenly.
_LOOKED_AT = 1000

# Columns of numbers that one column of texts becomes: at most so many, and one for so many rows.
# Accuracy of linear models rose up to one for 2 to 5 rows, that of forests fell above one for 10.
MOST_COLUMNS, ROWS_FOR_A_COLUMN, FEW_COLUMNS = 100, 5, 10
_BUCKETS = 1 << 18
# Texts of so many characters are held as n-grams at a time, and fitted, spread evenly.
MOST_CHARACTERS = 1 << 22
# Directions with less than this share of the largest singular value are rounding errors.
_LEAST_SHARE = 1e-6
# Numbers are multiples of this. Processors round the last bits of an SVD differently, by 1e-12 at
# most where it was measured (kernels for Haswell, Skylake-X and Nehalem).
_STEP = 2.0**-10


def is_free_text(column: pd.Series[Any]) -> bool:
    """Whether a column of texts is free text: more than half of its filled cells differ, and half
    of those have three words or more, or 200 characters or more.

    >>> import pandas as pd
    >>> is_free_text(pd.Series(["Arrived on time.", "The handle broke off", None]))
    True
    >>> is_free_text(pd.Series(["Anna Schmidt", "A-10293", "2026-01-31 10:00"]))
    False
    """
    known = column.dropna().map(str).str.strip()
    known = known[known != ""]
    different = known.unique()
    if len(known) == 0 or 2 * len(different) <= len(known):
        return False
    texts = different[:: -(-len(different) // _LOOKED_AT)].tolist()
    return bool(
        np.median([_words(text) for text in texts]) >= WORDS
        or np.median([len(text) for text in texts]) >= CHARACTERS
    )


def _words(text: str) -> int:
    return max(len(_WORD.findall(text)), len(_UNSPACED.findall(text)))


class FreeText:
    r"""One column of texts into float64 (rows, columns), fitted once, on all training rows.

    Character n-grams within words (3 to 5) and word n-grams (1 and 2) are counted in 2^18 buckets
    each. For each of the two,

    .. math:: a_{tg} \propto (1 + \log c_{tg}) \left(1 + \log \frac{1 + n}{1 + n_g}\right), \quad
              \sum_g a_{tg}^2 = 1,

    where text t has n-gram g c times, and n_g of n texts have it. Texts are then projected on the
    first right singular vectors of a (latent semantic analysis, Deerwester et al. 1990). One factor
    for all columns gives the one that varies most the standard deviation 1. Gaps and texts without
    a known n-gram become zeros.

    The same texts give the same bits: the random numbers of the SVD are fixed, it runs in one
    thread, and its results are rounded to 2^-10.
    """

    def __init__(self, column: pd.Series[Any]) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

        how: dict[str, Any] = {"n_features": _BUCKETS, "alternate_sign": False, "norm": None}
        self._hashing = (
            HashingVectorizer(analyzer="char_wb", ngram_range=(3, 5), **how),
            HashingVectorizer(ngram_range=(1, 2), **how),
        )
        texts = [text for text in _texts(column) if text.strip()]
        step = -(-sum(map(len, texts)) // MOST_CHARACTERS)
        counted = [hashing.transform(texts[::step]) for hashing in self._hashing]
        # Buckets that no row fills would only take memory.
        self._filled = [np.unique(counts.indices) for counts in counted]
        self._weighting = [TfidfTransformer(sublinear_tf=True) for _ in counted]
        rows = _beside(
            weighting.fit_transform(counts[:, filled])
            for weighting, counts, filled in zip(
                self._weighting, counted, self._filled, strict=True
            )
            if len(filled)
        )
        self._directions = _directions(rows)
        self.columns = self._directions.shape[1]

    def __call__(self, column: pd.Series[Any]) -> FloatArray:
        texts = np.array(_texts(column), dtype=object)
        characters = np.cumsum([len(text) for text in texts])
        first = np.flatnonzero(np.diff(characters // MOST_CHARACTERS)) + 1
        return np.concatenate([self._numbers(part) for part in np.split(texts, first)])

    def _numbers(self, texts: Any) -> FloatArray:
        rows = _beside(
            weighting.transform(hashing.transform(texts)[:, filled])
            for hashing, weighting, filled in zip(
                self._hashing, self._weighting, self._filled, strict=True
            )
            if len(filled)
        )
        return _projected(rows, self._directions)


def narrowed(rows: Any) -> FloatArray:
    """Sparse rows of many columns, such as counts of words, as up to 100 numbers each: projected on
    their first right singular vectors, as free text is.
    """
    rows = rows.tocsr().astype(np.float64)
    return _projected(rows, _directions(rows))


def _directions(rows: Any) -> FloatArray:
    """The first right singular vectors in columns, times one factor: the one that varies most has
    the standard deviation 1.
    """
    from sklearn.decomposition import TruncatedSVD

    most = min(MOST_COLUMNS, max(FEW_COLUMNS, rows.shape[0] // ROWS_FOR_A_COLUMN), *rows.shape)
    # The shares of the variance, which are not used, have none to divide by for one row.
    with one_blas_thread(), np.errstate(invalid="ignore", divide="ignore"):
        svd = TruncatedSVD(most, random_state=0).fit(rows)
    kept = svd.singular_values_ > _LEAST_SHARE * svd.singular_values_[0]
    directions = svd.components_[kept].T
    spread = float((rows @ directions).std(axis=0).max())
    return np.asarray(directions / spread if spread > _STEP else directions)


def _projected(rows: Any, directions: FloatArray) -> FloatArray:
    # Adding zero leaves no -0.0, which has other bits.
    return np.asarray(np.round((rows @ directions) / _STEP) * _STEP + 0.0)


def _texts(column: pd.Series[Any]) -> list[str]:
    """Cells as texts that have bytes (half a surrogate pair has none), gaps as empty ones."""
    filled = column.astype(object).where(column.notna(), "")
    return [str(cell).encode("utf-8", "replace").decode("utf-8") for cell in filled]


def _beside(blocks: Any) -> Any:
    from scipy import sparse

    return sparse.hstack(list(blocks), format="csr")
