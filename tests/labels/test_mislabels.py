"""mislabels(): what it finds, what it promises, and that nothing about a machine changes it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import databanzhaf as db
from databanzhaf.labels import judging, prepare, stages
from databanzhaf.labels.judged import flagged
from databanzhaf.labels.tally import Shape, Tally, pack


def blobs(n=240, classes=2, flips=0.1, seed=0, apart=3.0):
    rng = np.random.default_rng(seed)
    true = np.arange(n) % classes
    centers = np.random.default_rng(99).normal(size=(classes, 4)) * apart
    X = centers[true] + rng.normal(size=(n, 4))
    y = true.copy()
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.choice(n, round(flips * n), replace=False)] = True
    y[wrong] = (true[wrong] + rng.integers(1, classes, wrong.sum())) % classes
    return X, y, wrong, true


@pytest.fixture(scope="module")
def found():
    X, y, wrong, true = blobs()
    return db.mislabels(X, y, budget=150), X, y, wrong, true


def test_wrong_labels_are_found_and_the_right_ones_suggested(found):
    result, _, y, wrong, true = found
    assert set(np.flatnonzero(wrong)) >= set(result.rows()[:15])
    assert wrong[result.flag].mean() >= 0.75
    assert (result.suggested[wrong] == true[wrong]).all()
    low, high = result.share[1:]
    assert low - 0.02 <= 0.1 <= high + 0.02
    assert result.found_of_100 == pytest.approx(100 * result.flag[wrong].mean(), abs=15)
    assert abs(result.expected_wrong(24) - wrong[result.order[:24]].sum()) < 4
    table = result.table()
    assert list(table.columns) == [
        "row", "id", "label", "suggested", "p_wrong", "p_suggested", "agreement", "margin",
        "rank", "flag",
    ]  # fmt: skip
    assert (table["row"] == np.arange(240)).all()
    assert sorted(table["rank"]) == list(range(1, 241))
    assert (np.diff(result.p_wrong[result.order]) <= 0).all()
    fixed = result.apply(y)
    assert (fixed != true).sum() < (y != true).sum()
    assert (y == found[2]).all()


def test_columns_agree_with_each_other(found):
    result, _, y, *_ = found
    assert (result.suggested != y).all()
    np.testing.assert_allclose(result.margin, (result.own - result.other).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(result.agreement, (result.other > result.own).mean(axis=0))
    assert (result.p_suggested <= result.p_wrong + 1e-9).all()
    assert result.n_trainings == 150 * 5


@pytest.mark.parametrize("how", [{"n_jobs": 1}, {"n_jobs": 2}])
def test_the_number_of_threads_changes_no_bit(found, how):
    result, X, y, *_ = found
    again = db.mislabels(X, y, budget=150, **how)
    assert np.array_equal(result.p_wrong, again.p_wrong)
    assert np.array_equal(result.own, again.own)


def test_a_run_that_is_stopped_and_resumed_is_the_same(found, tmp_path):
    result, X, y, *_ = found
    path, seen = tmp_path / "run.db", []

    def stop(done, total):
        seen.append(done)
        if done >= 100 and len(seen) < 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        db.mislabels(X, y, budget=150, ledger=path, progress=stop)
    with db.Ledger(path) as ledger:
        assert 50 <= ledger.count() < 150
    resumed = db.mislabels(X, y, budget=150, ledger=path)
    assert np.array_equal(result.p_wrong, resumed.p_wrong)
    with db.Ledger(path) as ledger:
        assert ledger.count() == 150
    # A smaller budget reads a part; a larger one continues.
    fewer = db.mislabels(X, y, budget=60, ledger=path)
    assert fewer.n_trainings == 300
    assert np.array_equal(fewer.p_wrong, db.mislabels(X, y, budget=60).p_wrong)
    with pytest.raises(db.LedgerMismatch):
        db.mislabels(X, y, budget=60, seed=1, ledger=path)
    other = y.copy()
    other[0] = 1 - other[0]
    with pytest.raises(db.LedgerMismatch):
        db.mislabels(X, other, budget=60, ledger=path)


def test_no_row_is_judged_by_a_model_that_has_seen_it(found, tmp_path):
    """The label of a row has no part in what is said of the row."""
    _, X, y, *_ = found
    first = prepare(X, y)
    other = y.copy()
    other[5] = 1 - other[5]
    second = prepare(X, other)
    rows = stages.Rows(first.units, y, 0)
    inside = rows.coalitions(0, np.arange(10), rows.odds(None))
    keys = db.chance.keys(0, db.chance.TRAINING, np.arange(10))
    for a, b in zip(first.judges.members, second.judges.members, strict=True):
        said, again = a.answers(inside, keys), b.answers(inside, keys)
        without = ~inside[:, 5]
        assert without.any()
        assert np.array_equal(said[without, 5], again[without, 5])
        assert not np.array_equal(said[inside[:, 5]], again[inside[:, 5]])


def test_a_table_without_wrong_labels_flags_hardly_any():
    flags = [
        db.mislabels(*blobs(flips=0.0, seed=seed)[:2], budget=100).flag.sum() for seed in (1, 2)
    ]
    assert sum(flags) <= 4


def test_pure_noise_flags_nothing_and_says_so():
    rng = np.random.default_rng(0)
    result = db.mislabels(rng.normal(size=(200, 5)), rng.integers(0, 2, 200), budget=100)
    assert not result.learned
    assert not result.flag.any()
    assert np.isnan(result.share).all()
    assert "no better than a guess" in repr(result)


@pytest.mark.parametrize(("flips", "n_checked"), [(0.1, 0), (0.3, 0), (0.4, 200)])
def test_flags_keep_their_promise(flips, n_checked):
    """Of the flagged labels at most a fifth is right, within four standard errors. That four labels
    in ten are wrong is known from checked rows only.
    """
    flags = right = 0
    for seed in range(3):
        X, y, wrong, _ = blobs(400, flips=flips, seed=seed)
        more, _, _, known = blobs(n_checked or 10, flips=0.0, seed=9 + seed)
        checked = (more, known) if n_checked else ()
        result = db.mislabels(X, y, *checked, budget=100, fdr=0.2)
        flags += result.flag.sum()
        right += (~wrong)[result.flag].sum()
        if n_checked:
            assert result.share[1] - 0.02 <= flips <= result.share[2] + 0.02
    assert flags > (50 if flips != 0.3 else 0)
    assert right / flags <= 0.2 + 4 * np.sqrt(0.2 * 0.8 / flags)


def test_one_class_whose_labels_are_often_wrong_is_seen():
    """Of class 1 four labels in ten are wrong, of class 0 none."""
    X, _, _, true = blobs(400, flips=0.0, apart=2.0)
    wrong = (true == 1) & (np.random.default_rng(0).random(400) < 0.4)
    result = db.mislabels(X, np.where(wrong, 0, true), budget=150)
    assert result.flag[wrong].mean() > 0.9
    assert wrong[result.flag].mean() > 0.9
    assert result.share[1] - 0.02 <= wrong.mean() <= result.share[2] + 0.02


def test_many_classes_and_a_rare_one():
    X, y, wrong, true = blobs(600, classes=12, apart=4.0)
    names = np.array([f"class {label}" for label in y])
    rare = np.flatnonzero(true == 11)[3:]
    keep = np.setdiff1d(np.arange(600), rare)
    result = db.mislabels(X[keep], names[keep], budget=100)
    order = result.order[: wrong[keep].sum()]
    assert wrong[keep][order].mean() > 0.75
    right = (true[keep] == 11) & (names[keep] == "class 11")
    assert result.flag[right].sum() <= 1  # three rows of a class are not simply wrong


def test_copies_with_different_labels_are_named_and_stand_together():
    X, y, *_ = blobs(60)
    X = np.concatenate([X, X[:2], X[10:11]])
    y = np.concatenate([y, 1 - y[:2], y[10:11]])
    result = db.mislabels(X, y, budget=50)
    assert [part.tolist() for part in result.conflicts] == [[0, 60], [1, 61]]
    case = prepare(X, y)
    assert case.units[0] == case.units[60] != case.units[1]
    rows = stages.Rows(case.units, y, 0)
    inside = rows.coalitions(0, np.arange(200), rows.odds(None))
    assert np.array_equal(inside[:, 10], inside[:, 62])


def test_a_frequent_record_is_known_by_its_copies():
    """Sixty rows without an answer, all of one class."""
    X, y, *_ = blobs(240)
    X = np.concatenate([X, np.tile(X.mean(axis=0) + 1, (60, 1))])
    y = np.concatenate([y, np.ones(60, dtype=y.dtype)])
    y[-1] = 0
    result = db.mislabels(X, y, budget=50)
    assert result.flag[240:299].sum() == 0
    assert result.p_wrong[299] > 0.9


@pytest.mark.parametrize("change", [(1e9, 0.0), (1e-9, 0.0), (1.0, 1e8), (1e200, 0.0)])
def test_the_unit_of_a_target_does_not_matter(change):
    factor, offset = change
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = 3 * X[:, 0] + 0.5 * rng.normal(size=200)
    y[:10] += 8
    plain = db.mislabels(X, y, budget=20)
    other = db.mislabels(X, y * factor + offset, budget=20)
    np.testing.assert_allclose(other.p_wrong, plain.p_wrong, atol=0.02)
    np.testing.assert_allclose(
        other.low, plain.low * factor + offset, rtol=1e-3, atol=0.05 * factor
    )


def test_an_absurd_target_costs_no_other_row():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = 3 * X[:, 0] + 0.5 * rng.normal(size=200)
    y[3] = 1e9
    result = db.mislabels(X, y, budget=50)
    assert result.rows().tolist() == [3]
    assert abs(result.suggested[3] - 3 * X[3, 0]) < 2


def test_checked_rows_help_and_are_not_judged(found):
    _, X, y, _, true = found
    more, _, _, labels = blobs(100, seed=7, flips=0.0)
    with_more = db.mislabels(X, y, more, labels, budget=100)
    assert len(with_more.p_wrong) == 240
    assert with_more.n_checked == 100
    known = np.arange(0, 240, 3)
    fixed = np.where(np.isin(np.arange(240), known), true, y)
    inside = db.mislabels(X, fixed, budget=100, checked=known)
    assert inside.known.sum() == 80
    assert not inside.flag[known].any()
    assert (inside.p_wrong[known] == 0).all()
    assert (inside.table()["flag"][known] == "checked").all()
    rest = np.setdiff1d(np.arange(240), known)
    apart = db.mislabels(X[rest], y[rest], X[known], true[known], budget=100)
    assert np.array_equal(inside.p_wrong[rest], apart.p_wrong)


def test_a_review_of_the_first_rows_does_not_hide_the_others():
    """What was wrong among the reviewed rows says how many of the others are wrong."""
    X, y, _, true = blobs(500, flips=0.15, seed=5, apart=1.2)
    first = db.mislabels(X, y, budget=100)
    reviewed = first.order[:25]
    fixed = y.copy()
    fixed[reviewed] = true[reviewed]
    left = (fixed != true).sum() / 475
    told = db.mislabels(X, fixed, checked=reviewed, before=y, budget=100)
    untold = db.mislabels(X, fixed, checked=reviewed, budget=100)
    assert told.share[1] <= left <= told.share[2]
    assert abs(told.share[0] - left) < abs(untold.share[0] - left)


def test_doubtful_rows_join_less_often_and_no_class_is_left_out():
    rows = stages.Rows(np.arange(7), np.array([0, 0, 0, 0, 0, 1, 1]), 1)
    wrong = np.array([0.0, 1.0, 0.5, 0.0, 0.0, 1.0])
    odds = rows.odds(wrong)
    np.testing.assert_allclose(odds, [0.5, 0.0, 0.25, 0.5, 0.5, 0.35, stages.CHECKED_JOIN])
    drawn = rows.coalitions(3, np.arange(4000), odds).mean(axis=0)
    np.testing.assert_allclose(drawn, odds, atol=4 * 0.5 / np.sqrt(4000))
    assert (rows.odds(None)[:6] == 0.5).all()
    copies = stages.Rows(np.array([0, 0, 1, 2]), np.zeros(4, dtype=int), 0)
    odds = copies.odds(np.array([1.0, 0.0, 0.0, 0.0]))
    assert odds[0] == odds[1] == pytest.approx(0.25)  # they stay together


def test_models_of_ones_own_join():
    X, y, wrong, _ = blobs(80)
    models = [LogisticRegression(), "knn", "forest", LogisticRegression(C=0.1)]
    result = db.mislabels(X, y, models=models, budget=50, n_jobs=1)
    assert result.judges == ("LogisticRegression 1", "knn", "forest", "LogisticRegression 2")
    assert wrong[result.order[:8]].mean() > 0.7
    again = db.mislabels(X, y, models=models, budget=50, n_jobs=2)
    assert np.array_equal(result.p_wrong, again.p_wrong)
    torch = pytest.importorskip("torch")

    def module():
        return torch.nn.Linear(4, 2)

    one = db.mislabels(X, y, models=module, budget=50)
    assert one.judges == ("module",)

    class Odd(LogisticRegression):
        def predict_proba(self, X):
            return 3 * super().predict_proba(X)

    with pytest.raises(db.DatabanzhafError, match="Odd predicts probabilities that are not"):
        db.mislabels(X, y, models=Odd(), budget=5, n_jobs=1)


def test_mixed_columns_texts_and_other_tables():
    X, y, wrong, _ = blobs(200, seed=4)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["colour"] = np.where(rng.random(200) < 0.5, "red", "blue")
    frame.loc[::7, "a"] = np.nan
    frame.index = [f"r{row}" for row in range(200)]
    result = db.mislabels(frame, pd.Series(y, index=frame.index), budget=50)
    assert result.table()["id"][3] == "r3"
    assert wrong[result.order[:20]].mean() > 0.6
    words = {0: ["sun", "sea", "sand"], 1: ["snow", "ice", "frost"]}
    true = np.arange(120) % 2
    texts = [
        " ".join(rng.choice(words[label], 4)) + f" day {row}" for row, label in enumerate(true)
    ]
    labels = true.copy()
    labels[:6] = 1 - labels[:6]
    assert set(db.mislabels(texts, labels, budget=50).order[:6]) == set(range(6))


def test_wide_sparse_rows_are_narrowed():
    from scipy.sparse import csr_matrix, hstack, random

    rng = np.random.default_rng(0)
    true = np.arange(300) % 2
    words = csr_matrix((rng.random((300, 40)) < 0.3) & (true[:, None] == np.arange(40) % 2))
    X = hstack([words, random(300, 4000, 0.002, random_state=0)]).tocsr()
    y = true.copy()
    y[:12] = 1 - y[:12]
    result = db.mislabels(X, y, budget=50)
    assert len(set(result.order[:12]) & set(range(12))) >= 11
    assert "4,040 columns of the sparse rows became 100 or fewer" in " ".join(result.notes)


def test_the_only_row_of_a_class_is_not_called_wrong():
    X, y, *_ = blobs(120, flips=0.0)
    y[5] = 7
    result = db.mislabels(X, y, budget=50)
    assert result.p_wrong[5] == pytest.approx(np.delete(result.p_wrong, 5).mean())
    assert not result.flag[5]


def test_many_whole_numbers_are_amounts_and_said_to_be():
    X = np.random.default_rng(0).normal(size=(240, 3))
    y = np.arange(240) % 24
    found = prepare(X, y)
    assert found.classes is None
    assert "24 different whole numbers, more than 20" in " ".join(found.notes)
    assert not any("whole numbers" in note for note in prepare(X, y, task="regression").notes)


def test_a_regression_names_swapped_targets():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 4))
    true = 3 * X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=400)
    y, wrong = true.copy(), np.zeros(400, dtype=bool)
    wrong[rng.choice(400, 40, replace=False)] = True
    y[wrong] = rng.permutation(true[wrong])
    far = wrong & (np.abs(y - true) > 3)
    result = db.mislabels(X, y, budget=100)
    assert result.classes is None
    assert result.flag[far].mean() > 0.6
    assert wrong[result.flag].mean() > 0.75
    assert ((result.low <= result.suggested) & (result.suggested <= result.high)).all()
    inside = (result.low <= y) & (y <= result.high)
    assert 0.85 < inside[~wrong].mean() < 0.97
    assert list(result.table().columns) == [
        "row", "id", "label", "expected", "low", "high", "p_wrong", "agreement", "margin",
        "rank", "flag",
    ]  # fmt: skip
    flat = db.mislabels(X, true, budget=100)
    assert flat.flag.mean() < 0.02


def test_targets_whose_errors_grow_are_judged_by_their_own_spread():
    rng = np.random.default_rng(2)
    X = rng.uniform(1, 10, size=(500, 3))
    y = X[:, 0] ** 2 * np.exp(0.3 * rng.normal(size=500))
    y[:20] = rng.permutation(y)[:20]
    spread = judging.OfNumbers(y, 500, 0)
    committee = judging.Committee(prepare(X, y).judges.members, y, None)
    tally = stages.run(
        committee,
        stages.Rows(np.arange(500), np.zeros(500, dtype=int), 0),
        seed=0,
        budget=50,
        wrong=spread.wrong,
        ledger=None,
        evaluator=db.evaluators.Local(),
        watch=lambda done, total: None,
    )
    assert spread.judged(tally).spread != "the same for all rows"


def test_packed_answers_come_back():
    rng = np.random.default_rng(0)
    for classes in (2, 3, None):
        shape = Shape(2, 7, classes)
        said = rng.random((2, 7, shape.outputs)).astype(np.float32)
        if classes == 2:
            said[..., 0] = 1 - said[..., 1]
        outside = np.array([1, 0, 1, 1, 0, 0, 1], dtype=bool)
        packed = pack(said, outside, None if classes else 1.0)
        which, back = shape.unpack(packed)
        assert np.array_equal(which, outside)
        steps = 255 if classes else 1
        np.testing.assert_allclose(back / steps, said[:, outside], atol=0.5 / 255 + 1e-6)
        tally = Tally(shape)
        tally.add([packed, packed])
        assert tally.count.tolist() == [2, 0, 2, 2, 0, 0, 2]
        np.testing.assert_allclose(tally.means()[:, outside], back / steps)
    size = -(-7 // 8) + 2 * 4
    assert len(pack(np.full((2, 7, 2), 0.5, np.float32), outside, None)) == size


def test_the_longest_list_with_so_many_right_labels():
    wrong = np.array([0.9, 0.2, 0.8, 0.5])
    assert flagged(wrong, 0.15).tolist() == [True, False, True, False]
    assert flagged(wrong, 0.3).tolist() == [True, False, True, False]  # 0.5 is no more wrong
    assert flagged(np.array([0.9, 0.2, 0.8, 0.6]), 0.3).tolist() == [True, False, True, True]
    assert flagged(wrong, 0.05).tolist() == [False] * 4


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"y": np.zeros(60)}, "two classes"),
        ({"y": np.arange(60).astype(str)}, "must share labels"),
        ({"X": np.zeros((5, 2)), "y": [0, 1, 0, 1, 0]}, "ten rows"),
        ({"X_checked": np.zeros((2, 4))}, "belong together"),
        ({"X_checked": np.zeros((2, 4)), "y_checked": [0, 7]}, "classes of the table"),
        ({"X_checked": np.zeros((2, 3)), "y_checked": [0, 1]}, "same columns"),
        ({"X_checked": np.zeros((2, 4)), "y_checked": ["a", "b"]}, "one kind"),
        ({"y": np.arange(59) % 2}, "one label per row"),
        ({"X_checked": np.zeros((2, 4)), "y_checked": [1]}, "one label per row"),
        ({"X": "abc"}, "list of texts"),
        ({"X": None}, "list of texts"),
        ({"X": [[1.0], [1.0, 2.0]] * 30}, "one length"),
        ({"y": [None, "a"] * 30}, "missing label"),
        ({"y": np.array([1, "a"] * 30, dtype=object)}, "all texts or all numbers"),
        ({"y": ["a", "b"] * 30, "task": "regression"}, "needs numbers"),
        ({"X_checked": blobs(60)[0][:3], "y_checked": [0, 1, 0]}, "further rows"),
        ({"models": []}, "`models` must be"),
        ({"models": "forst"}, "Did you mean forest"),
        ({"models": ["linear"]}, "linear"),
        ({"fdr": 2}, "fdr"),
        ({"task": "guess"}, "`task` must be"),
        ({"budget": 0}, "budget"),
        ({"seed": -1}, "seed"),
        ({"checked": [99]}, "`checked` must list"),
        ({"task": "regression", "y": np.full(60, 2.5)}, "must differ"),
        ({"y": np.r_[np.arange(59) + 0.5, np.inf]}, "finite"),
        ({"y": 1e15 + np.arange(60) / 10}, "more than rounding"),
    ],
)
def test_bad_input_gets_one_sentence(change, match):
    X, y, *_ = blobs(60)
    given = {"X": X, "y": y, "budget": 10, **change}
    with pytest.raises(db.InvalidInput, match=match):
        db.mislabels(given.pop("X"), given.pop("y"), **given)


def test_apply_wants_the_labels_that_were_judged(found):
    result, _, y, *_ = found
    with pytest.raises(db.InvalidInput, match="were judged"):
        result.apply(y[:-1])
    chosen = result.apply(y, rows=[3])
    assert (chosen != y).sum() == 1
    assert "<table" in result._repr_html_()


def test_no_warning_escapes(found):
    _, X, y, *_ = found
    with warnings.catch_warnings(record=True) as escaped:
        warnings.simplefilter("always")
        db.mislabels(X[:60], y[:60], budget=10)
    assert [str(each.message) for each in escaped] == []


def test_checked_rows_of_one_class_are_noted():
    X, y, _, _ = blobs()
    one = np.flatnonzero(y == 0)[:20]
    rest = np.setdiff1d(np.arange(len(y)), one)
    case = prepare(X[rest], y[rest], X[one], y[one])
    assert "No checked row has the label '1'" in " ".join(case.notes)
    both = np.arange(20)
    assert not prepare(X[20:], y[20:], X[both], y[both]).notes


def test_a_page_and_its_decisions_from_python(found, tmp_path):
    from databanzhaf.tables.decisions import Decision, Decisions, write_decisions

    result, X, y, _, true = found
    page = result.review(tmp_path / "review.html").read_text()
    assert result.fingerprint in page
    first, second = result.order[:2].tolist()
    made = (
        Decision(first, str(y[first]), "fix", str(true[first])),
        Decision(second, str(y[second]), "drop"),
        Decision(239, str(y[239]), "keep"),
    )
    made = tuple(sorted(made, key=lambda each: each.row))
    write_decisions(tmp_path / "d.csv", Decisions(result.fingerprint, "label", made))
    fixed = result.apply(y, decisions=tmp_path / "d.csv")
    assert np.flatnonzero(fixed != y).tolist() == [first]
    assert fixed[first] == true[first]
    assert fixed.dtype == y.dtype
    assert result.dropped(tmp_path / "d.csv").tolist() == [second]
    made = (
        Decision(0, str(y[0]), "fix", "7"),
        Decision(1, str(y[1]), "fix", str(1 - y[1])),
    )
    write_decisions(tmp_path / "n.csv", Decisions(result.fingerprint, "label", made))
    fixed = result.apply(y, decisions=tmp_path / "n.csv")
    assert fixed[:2].tolist() == [7, 1 - y[1]]
    assert fixed.dtype == y.dtype
    write_decisions(tmp_path / "e.csv", Decisions("0" * 16, "label", made))
    with pytest.raises(db.InvalidInput, match="about these rows"):
        result.apply(y, decisions=tmp_path / "e.csv")
    images = db.mislabels(np.stack([X] * 3, axis=1).reshape(240, 4, 3), y, budget=5)
    assert "data:image/png" in images.review(tmp_path / "images.html").read_text()
