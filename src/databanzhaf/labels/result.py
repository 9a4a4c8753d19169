"""What a committee says of every label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.errors import InvalidInput, short
from databanzhaf.frames import as_array, as_pandas
from databanzhaf.protocols import BoolArray, FloatArray, IntArray
from databanzhaf.tables.decisions import Decision, read_decisions

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Mislabels:
    """What a committee says of every label.

    Attributes
    ----------
    labels : array (n,)
        As they came.
    suggested : array (n,)
        The most likely other label; for a regression the expected number.
    p_wrong : float64 array (n,)
        How likely each label is wrong.
    p_suggested : float64 array (n,)
        How likely the suggested label is the true one.
    agreement : float64 array (n,)
        The share of the judges that find the suggested label likelier than the row's own; for a
        regression of those for which the target is outside nine of ten.
    margin : float64 array (n,)
        Probability of the row's own label minus that of the suggested one, averaged over
        judges; for a regression 1 minus the distance from the expected number, in widths of that
        side of its interval. Below zero the judges disagree with the label.
    flag : bool array (n,)
        The longest list of which a share of `fdr` at most is expected to be right.
    share : tuple of three floats
        The estimated share of wrong labels, and its 95% interval; NaN if it cannot be known.
    learned : bool
        Whether the judges are better than a guess. If not, nothing is flagged.
    found_of_100 : float
        Of 100 planted errors the flagged list would have found this many.
    low, high : float64 array (n,) or None
        Nine of ten right targets lie between them; for a regression.
    classes : array or None
        None for a regression.
    judges : tuple of str
        The models of the committee; `says`, `own` and `other` have a line for each: what it
        expects, and its probabilities of the row's own label and of the suggested one.
    n_trainings : int
    conflicts : tuple of arrays
        Rows with the same cells and different labels.
    known : bool array (n,)
        Rows whose labels were checked before; they are not judged.
    notes : tuple of str
    fingerprint : str
        Of rows and labels; decisions name it.
    """

    labels: Any
    suggested: Any
    p_wrong: FloatArray
    p_suggested: FloatArray
    agreement: FloatArray
    margin: FloatArray
    flag: BoolArray
    share: tuple[float, float, float]
    found_of_100: float
    fdr: float
    low: FloatArray | None
    high: FloatArray | None
    classes: Any
    judges: tuple[str, ...]
    says: Any
    own: FloatArray
    other: FloatArray
    n_trainings: int
    n_checked: int
    conflicts: tuple[IntArray, ...]
    learned: bool = True
    notes: tuple[str, ...] = ()
    read_as: str = ""
    index: Any = field(default=None, repr=False)
    known: Any = field(default=None, repr=False)
    fingerprint: str = ""
    page: Callable[[Mislabels, Path], Path] | None = field(default=None, repr=False)

    @property
    def order(self) -> IntArray:
        """The rows, most doubtful first."""
        return np.lexsort((self.margin, -self.p_wrong)).astype(np.int64)

    @property
    def rank(self) -> IntArray:
        """1 for the most doubtful row."""
        out = np.empty(len(self.p_wrong), dtype=np.int64)
        out[self.order] = np.arange(1, len(out) + 1)
        return out

    def rows(self) -> IntArray:
        """The positions of the flagged rows, most doubtful first."""
        order = self.order
        return order[self.flag[order]]

    def expected_wrong(self, count: int) -> float:
        """How many of the most doubtful `count` rows are expected to be wrong."""
        return float(self.p_wrong[self.order[:count]].sum())

    def table(self) -> pd.DataFrame:
        """One line for each row of the table, in its order: the columns of mislabels.csv."""
        import pandas as pd

        n = len(self.p_wrong)
        ids = [""] * n if self.index is None or _plain(self.index) else list(self.index)
        columns: dict[str, Any] = {"row": np.arange(n), "id": ids, "label": self.labels}
        # Judges that know no better than a guess have no say.
        told = 1.0 if self.learned else np.nan
        if self.low is None or self.high is None:
            columns["suggested"] = self.suggested
        else:
            columns["expected"] = self.suggested
            columns |= {"low": self.low * told, "high": self.high * told}
        columns["p_wrong"] = self.p_wrong * told
        if self.classes is not None:
            columns["p_suggested"] = self.p_suggested * told
        columns |= {"agreement": self.agreement, "margin": self.margin, "rank": self.rank}
        columns["flag"] = np.where(self.flag, "wrong?", np.where(self.known, "checked", ""))
        return pd.DataFrame(columns)

    def review(self, path: str | Path = "review.html") -> Path:
        """Write the review page to a file. It saves decisions.csv, which `apply` reads."""
        if self.page is None:
            raise InvalidInput(
                "a review needs the rows",
                got="a result without them",
                remedy="Call databanzhaf.mislabels(X, y).",
            )
        return self.page(self, Path(path))

    def apply(self, y: Any, rows: Any = None, *, decisions: str | Path | None = None) -> Any:
        """A copy of `y` with the suggested labels in the flagged rows, or in all that you name; or
        with the new labels of `decisions`, the file that the review page saves. Rows that it drops
        keep their labels; `dropped` names them.
        """
        labels = np.array(as_array("y", as_pandas("y", y)))
        if len(labels) != len(self.labels) or not (labels == self.labels).all():
            raise InvalidInput(
                "`y` must be the labels that were judged",
                got=f"{len(labels)} labels, not the same",
                remedy="Pass the same `y` to mislabels() and to apply().",
            )
        if labels.dtype.kind in "iu" and self.classes is None:
            labels = labels.astype(np.float64)
        if decisions is not None:
            made = [each for each in self._decided(decisions) if each.decision == "fix"]
            which = np.array([each.row for each in made], dtype=np.int64)
            return _alike(y, _with(labels, which, [self._label(each.new_label) for each in made]))
        which = self.rows() if rows is None else positions("rows", rows, len(labels))
        return _alike(y, _with(labels, which, self.suggested[which]))

    def dropped(self, decisions: str | Path) -> IntArray:
        """The positions of the rows that a file of decisions drops."""
        made = self._decided(decisions)
        return np.array([each.row for each in made if each.decision == "drop"], dtype=np.int64)

    def _decided(self, path: str | Path) -> tuple[Decision, ...]:
        found = read_decisions(path)
        beyond = any(each.row >= len(self.labels) for each in found.made)
        if found.table != self.fingerprint or beyond:
            raise InvalidInput(
                "the decisions must be about these rows and labels",
                got=f"`{path}`, which is about others",
                remedy="Pass the file that was saved from this result's page.",
            )
        return found.made

    def _label(self, text: str) -> Any:
        """A label as the user's own, from its text."""
        if self.classes is None:
            try:
                return float(text)
            except ValueError as error:
                raise InvalidInput(
                    "a new target must be a number",
                    got=short(text),
                    remedy="Decide that row again.",
                ) from error
        known = {str(label): label for label in self.classes}
        if text not in known and self.classes.dtype.kind in "iu":
            with suppress(ValueError):
                return int(text)
        return known.get(text, text)

    def __repr__(self) -> str:
        share, low, high = self.share
        known = (
            f"about {share:.1%} wrong [{low:.1%}, {high:.1%}]"
            if self.learned
            else "judges no better than a guess"
        )
        return (
            f"Mislabels({int(self.flag.sum()):,} of {len(self.flag):,} labels flagged, {known}, "
            f"{self.n_trainings:,} trainings)"
        )

    def _repr_html_(self) -> str:
        shown = self.table().iloc[self.order[:10]]
        return f"<p>{self!r}</p>".replace("Mislabels(", "").replace(")</p>", "</p>") + str(
            shown.to_html(index=False, escape=True, border=0)
        )


def _plain(index: Any) -> bool:
    """Whether an index only numbers the rows."""
    return hasattr(index, "start") and hasattr(index, "step")


def _with(labels: Any, rows: IntArray, new: Sequence[Any]) -> Any:
    """Labels changed in some rows; texts get as much room as they need, and labels of another kind
    leave the others as they are.
    """
    found = [np.asarray(each).dtype for each in new]
    if any(each.kind != labels.dtype.kind for each in found):
        labels = labels.astype(object)
    elif labels.dtype.kind == "U":
        labels = labels.astype(np.result_type(labels.dtype, *found))
    for row, label in zip(rows.tolist(), new, strict=True):
        labels[row] = label
    return labels


def _alike(y: Any, labels: Any) -> Any:
    """Labels as the user's own kind of column."""
    if hasattr(y, "iloc") and getattr(y, "ndim", 0) == 1:
        import pandas as pd

        return pd.Series(labels, index=y.index, name=y.name)
    return labels.tolist() if isinstance(y, (list, tuple)) else labels


def positions(name: str, rows: Any, n: int) -> IntArray:
    """Positions of rows, from 0 to n - 1."""
    array = np.asarray(rows)
    whole = array.ndim == 1 and (array.dtype.kind in "iu" or not array.size)
    if not whole or (array.size and (array.min() < 0 or array.max() >= n)):
        raise InvalidInput(
            f"`{name}` must list positions of rows, from 0 to {n - 1}",
            got=short(rows),
            remedy="Try np.flatnonzero(mask).",
        )
    return array.astype(np.int64)
