"""Which labels are wrong? The one call from rows to an answer with a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from databanzhaf.files import write_text
from databanzhaf.labels import Case, Mislabels, judge, prepare
from databanzhaf.ledger import Ledger
from databanzhaf.protocols import Evaluator
from databanzhaf.report.review import render
from databanzhaf.report.review_build import Reviewed, review_of


def mislabels(
    X: Any,
    y: Any,
    X_checked: Any = None,
    y_checked: Any = None,
    *,
    checked: Any = None,
    before: Any = None,
    models: Any = "auto",
    budget: int | None = None,
    fdr: float = 0.2,
    task: str = "auto",
    seed: int = 0,
    n_jobs: int = -1,
    device: str = "auto",
    ledger: str | Path | Ledger | None = None,
    evaluator: Evaluator | None = None,
    progress: bool | Callable[[int, int], None] = False,
) -> Mislabels:
    """Find wrong labels: every row is judged by models that have not seen it.

    A committee of models is trained on random halves of the rows; later halves take doubtful rows
    less often. What the models say of the rows outside their half becomes the probability that a
    label is wrong.

    Parameters
    ----------
    X : table (rows, columns), array or list of texts
        What `Dataset` takes.
    y : array (rows,)
        The labels in doubt, or numbers.
    X_checked, y_checked : optional
        Further rows whose labels a person has checked. Models are trained on them too.
    checked : positions of rows, optional
        Rows of X whose labels a person has checked: they count as checked and are not judged.
    before : array (rows,), optional
        The labels before the rows in `checked` were reviewed and corrected. What was wrong then
        says how many of the other labels are wrong.
    models : "auto", model, or list of models
        "auto" is a linear model, a network, two forests and, unless columns times classes are more
        than 200, boosting. Names, scikit-learn
        estimators and functions that make a torch module can be listed, with "auto" among them.
    budget : int, optional
        Halves at most; each trains one model of each kind. The run stops earlier if the
        list has settled. By default 300, fewer for large tables.
    fdr : float
        The share of the flagged rows that may be right.
    task : "auto", "classification" or "regression"
    seed : int
        Decides every half and every training.
    n_jobs : int
        Threads, or processes for scikit-learn's models; -1 is one for each core. No number depends
        on it.
    device : "auto", "cpu" or "cuda"
        Where networks are trained.
    ledger : path or Ledger, optional
        Where evaluations are kept. Rerun the same call to resume.
    progress : bool or function
        Show a progress bar, or call ``function(done, total)``.

    >>> import numpy as np
    >>> X = np.arange(60.0)[:, None]
    >>> y = np.where(X[:, 0] < 30, "low", "high")
    >>> y[7] = "high"
    >>> found = mislabels(X, y, budget=50)
    >>> found.rows(), found.suggested[7]
    (array([7]), np.str_('low'))
    """
    case = prepare(
        X,
        y,
        X_checked,
        y_checked,
        checked=checked,
        before=before,
        models=models,
        task=task,
        seed=seed,
        n_jobs=n_jobs,
        device=device,
    )
    found = judge(
        case, budget=budget, fdr=fdr, ledger=ledger, evaluator=evaluator, progress=progress
    )
    return replace(found, fingerprint=case.fingerprint, page=partial(_page, case))


def _page(case: Case, found: Mislabels, path: Path) -> Path:
    rows, shape = case.frame()
    ids = None if case.numbered else list(case.index)
    reviewed = Reviewed(
        found,
        "the rows in memory",
        found.fingerprint,
        "label",
        rows,
        ids,
        shape,
        notes=(*case.notes, *found.notes),
        read_as=found.read_as,
    )
    write_text(path, render(review_of(reviewed)))
    return path
