import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import databanzhaf as db

X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 1, 0])
X_val, y_val = np.ones((3, 2)), np.array([0, 1, 1])


def test_kinds_of_tables_give_the_same_rows():
    rows = np.array([True, False, True, False, False, True])
    frame = pd.DataFrame(X, columns=["a", "b"], index=list("uvwxyz"))
    for table, val in (
        (X, X_val),
        (X.tolist(), X_val.tolist()),
        (frame, frame.iloc[:3]),
        (sparse.coo_matrix(X), sparse.csr_matrix(X_val)),
    ):
        data = db.Dataset(table, y, val, y_val)
        taken, labels = data.take(data.rows(rows))
        taken = taken.toarray() if sparse.issparse(taken) else np.asarray(taken)
        assert np.array_equal(taken, X[rows])
        assert np.array_equal(labels, y[rows])
        assert data.n_players == 6


def test_the_users_index_is_kept():
    frame = pd.DataFrame(X, index=list("uvwxyz"))
    assert list(db.Dataset(frame, y, frame[:3], y_val).players) == list("uvwxyz")
    assert list(db.Dataset(X, pd.Series(y, index=range(10, 16)), X_val, y_val).players) == list(
        range(10, 16)
    )
    assert db.Dataset(X, y, X_val, y_val).players is None


def test_groups_are_players():
    data = db.Dataset(X, y, X_val, y_val, groups=["b", "a", "b", "c", "a", "b"])
    assert data.n_players == 3
    assert data.players == ["a", "b", "c"]
    assert data.rows(np.array([False, True, False])).tolist() == [0, 2, 5]
    assert data.rows(np.array([True, False, True])).tolist() == [1, 3, 4]
    assert data.rows(np.zeros(3, bool)).tolist() == []


def test_the_fingerprint_sees_every_part():
    base = {"X": X, "y": y, "X_val": X_val, "y_val": y_val, "groups": [0, 0, 1, 1, 2, 2]}
    prints = {db.Dataset(**base).fingerprint()}
    for name, value in base.items():
        changed = np.array(value)
        changed[0] = changed[1] + 1
        prints.add(db.Dataset(**{**base, name: changed}).fingerprint())
    prints.add(db.Dataset(**{**base, "groups": None}).fingerprint())
    prints.add(db.Dataset(**{**base, "y": y.astype(str), "y_val": y_val.astype(str)}).fingerprint())
    frame = pd.DataFrame(X, columns=["a", "b"])
    prints.add(db.Dataset(**{**base, "X": frame, "X_val": frame[:3]}).fingerprint())
    prints.add(
        db.Dataset(
            **{**base, "X": sparse.csr_matrix(X), "X_val": sparse.csr_matrix(X_val)}
        ).fingerprint()
    )
    assert len(prints) == 10
    assert (
        db.Dataset(**base).fingerprint()
        == db.Dataset(**{k: np.array(v) for k, v in base.items()}).fingerprint()
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": y[:5]}, "`y`"),
        (
            {
                "X": pd.DataFrame(X),
                "y": pd.Series(y[::-1], index=range(5, -1, -1)),
                "X_val": pd.DataFrame(X_val),
            },
            "one order",
        ),
        ({"y_val": y}, "`y_val`"),
        ({"X": X[0]}, "`X`"),
        ({"X": X[:0], "y": y[:0]}, "`X`"),
        ({"X_val": np.ones((3, 5))}, "same columns"),
        ({"X_val": np.ones((0, 2)), "y_val": []}, "`X_val`"),
        ({"groups": [1, 2]}, "`groups`"),
        ({"groups": ["a", None, "b", "c", "a", "b"]}, "`groups`"),
        ({"groups": np.array(["a", 1, "b", 2, "a", 3], dtype=object)}, "`groups`"),
        ({"y": np.array([0, 1, np.nan, 1, 1, 0])}, "row 2"),
        ({"y": np.array(["a", None, "b", "a", "a", "b"], dtype=object)}, "row 1"),
        (
            {
                "X": pd.DataFrame(X, columns=["a", "b"]),
                "X_val": pd.DataFrame(X_val, columns=["b", "a"]),
            },
            "order",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(change, words):
    with pytest.raises(db.InvalidInput) as error:
        db.Dataset(**{"X": X, "y": y, "X_val": X_val, "y_val": y_val, **change})
    assert words in str(error.value)
