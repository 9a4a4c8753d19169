"""Columns of free text: which they are, and the numbers that they become."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import databanzhaf as db
from databanzhaf.tables import Encoder, texts
from databanzhaf.tables.texts import FreeText, is_free_text

TOPICS = {
    "camera": ["battery", "screen", "charger", "lens", "pixels", "firmware", "sensor", "flash"],
    "kitchen": ["pan", "knife", "oven", "kettle", "plate", "recipe", "spatula", "toaster"],
}
OTHERS = ["the", "a", "it", "was", "we", "had", "with", "very", "good", "bad", "order", "box"]


def reviews(n, seed=0):
    """Short texts of two classes, which share most of their words."""
    rng = np.random.default_rng(seed)
    names = np.array(list(TOPICS))[rng.integers(0, 2, n)]
    words = [
        [rng.choice(TOPICS[name]) for _ in range(2)] + [rng.choice(OTHERS) for _ in range(6)]
        for name in names
    ]
    return pd.Series([" ".join(rng.permutation(each)) for each in words], name="review"), names


@pytest.mark.parametrize(
    ("cells", "free"),
    [
        pytest.param(
            ["Anna Schmidt", "Li Wei", "Maria del Carmen Lopez", "Bob Ray"], False, id="names"
        ),
        pytest.param(["A-10293", "B-77", "user_15", "0049 30 1234567"], False, id="ids"),
        pytest.param(
            ["550e8400-e29b-41d4-a716-446655440000", "6fa459ea-ee8a-3ca4-894e-db77e160355e"],
            False,
            id="uuids",
        ),
        pytest.param(
            ["2026-01-31 10:00", "2026-02-01 11:30", "2026-02-02 08:15"], False, id="dates"
        ),
        pytest.param(["1,234.50", "$5", "17"], False, id="numbers"),
        pytest.param(
            ["a@example.com", "https://example.com/a-long-path/with-words/in-it", "b@c.org"],
            False,
            id="links",
        ),
        pytest.param(
            ["red and very dark"] * 3 + ["blue and very light"] * 3, False, id="categories"
        ),
        pytest.param(
            ["Sales and marketing managers", None, None, "Sales and marketing managers"],
            False,
            id="few",
        ),
        pytest.param([None, None], False, id="gaps"),
        pytest.param(["质量很好", "王小明", "李雷"], False, id="short-chinese"),
        pytest.param(
            ["12 Main Street, Springfield", "7 High Road, London N1", "Am Alten Markt 3, Köln"],
            True,
            id="addresses",
        ),
        pytest.param(
            ["Arrived on time.", "ok", "The handle broke off after a week", None, ""],
            True,
            id="comments",
        ),
        pytest.param(
            ["Steel kettle 1.7 l with filter", "USB-C cable, braided, 2 m", "Oak desk lamp"],
            True,
            id="titles",
        ),
        pytest.param(
            ["质量很好,下次还会买。", "收到的时候已经坏了", "颜色和图片不一样"], True, id="chinese"
        ),
        pytest.param(["x" * 300, "y" * 250, "z" * 200], True, id="long"),
    ],
)
def test_what_free_text_is(cells, free):
    assert is_free_text(pd.Series(cells, dtype=object)) is free


def test_a_share_of_a_large_column_tells():
    comments = pd.Series([f"item number {i} is broken" for i in range(5000)])
    assert is_free_text(comments)
    assert not is_free_text(pd.concat([comments[:2400], comments[:2400]]))
    assert is_free_text(pd.concat([comments, pd.Series([None] * 20_000)]))


def test_classes_of_texts_are_told_apart():
    column, names = reviews(400)
    encode = FreeText(column[:300])
    rows, others = encode(column[:300]), encode(column[300:])
    assert rows.shape == (300, 60)
    assert rows.std(axis=0).max() == pytest.approx(1, abs=1e-3)
    model = LogisticRegression(max_iter=1000).fit(rows, names[:300])
    assert model.score(others, names[300:]) > 0.95


def test_the_same_texts_give_the_same_bits_whatever_the_threads():
    column, _ = reviews(120)
    with threadpool_limits(1):
        one = FreeText(column)(column)
    with threadpool_limits(2):
        two = FreeText(column)(column)
    assert one.tobytes() == two.tobytes()
    assert np.array_equal(one * 1024, np.round(one * 1024))
    assert not np.signbit(one[one == 0]).any()


def test_rows_do_not_depend_on_the_rows_beside_them(monkeypatch):
    column, _ = reviews(60)
    encode = FreeText(column)
    whole = encode(column)
    assert np.array_equal(encode(column[7:9]), whole[7:9])
    monkeypatch.setattr(texts, "MOST_CHARACTERS", 100)
    assert np.array_equal(encode(column), whole)


def test_of_many_texts_an_even_part_is_fitted(monkeypatch):
    column, _ = reviews(60)
    monkeypatch.setattr(texts, "MOST_CHARACTERS", 1 + column.str.len().sum() // 2)
    assert np.array_equal(FreeText(column)(column), FreeText(column[::2])(column))


def test_gaps_empty_and_unknown_texts_are_zeros():
    column, _ = reviews(50)
    column[[3, 4, 5]] = [None, "", "  "]
    encode = FreeText(column)
    rows = encode(column)
    assert not rows[3:6].any()
    assert rows[[2, 6]].any(axis=1).all()
    strange = pd.Series(["日本語", np.nan, "half a pair: \ud800"], dtype=object)
    assert not encode(strange)[:2].any()


@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_texts(n):
    column = pd.Series([f"text number {name}" for name in "abcdefg"[:n]])
    rows = FreeText(column)(column)
    assert rows.shape[0] == n
    assert 1 <= rows.shape[1] <= n
    assert np.isfinite(rows).all()


def test_equal_texts_in_another_order_have_one_direction_less():
    column = pd.Series(["one two three", "one two three", "four five six"])
    assert FreeText(column).columns == 2


def test_a_table_with_numbers_categories_and_free_text():
    column, _ = reviews(60)
    column[5] = None
    table = pd.DataFrame(
        {
            "size": np.linspace(0, 1, 60) ** 2,
            "review": column,
            "city": np.where(np.arange(60) % 3, "Rome", "Köln"),
            "other": reviews(60, seed=1)[0],
        }
    )
    encoder = Encoder(table)
    assert encoder.read_as == (
        "Columns: 1 of numbers, 1 of categories (up to 2 different ones), "
        "2 free texts as 23 numbers; 1 with gaps."
    )
    assert encoder.notes == [
        "Columns `review`, `other` read as free text: word and character n-grams. If it names the "
        "rows, pass it with --id; leave it out with --drop."
    ]
    encoded = encoder(table)
    assert encoded.shape == (60, 1 + 2 + 11 + 12)
    assert not encoded[5, 3:14].any()
    for_forest = Encoder(table, one_hot=False)(table)
    assert [str(kind) for kind in for_forest.dtypes] == ["float64", "category"] + ["float64"] * 23
    assert for_forest.columns[2] == "review: text 0"
    assert np.array_equal(for_forest.iloc[:, 2:], encoded[:, 3:])
    without = Encoder(table.drop(columns="city"), one_hot=False)
    assert without(table).shape == (60, 24)
    with pytest.raises(db.InvalidInput, match="of the training table's kinds"):
        encoder(table.assign(review=1.0))
    assert not encoder(table.assign(review=None))[:, 3:14].any()


def test_categories_that_are_said_to_be_some_stay_so():
    column, _ = reviews(40)
    table = pd.DataFrame({"review": column.astype("category")})
    assert Encoder(table).read_as == "Columns: 1 of categories (up to 40 different ones)."


@pytest.mark.parametrize("one_hot", [True, False])
def test_a_table_of_one_column_of_texts(one_hot):
    column, _ = reviews(40)
    encoder = Encoder(column.to_frame(), one_hot=one_hot)
    assert encoder.read_as == "Columns: 1 free text as 10 numbers."
    assert encoder(column.to_frame()).shape == (40, 10)


def test_the_fingerprint_of_texts_is_that_of_their_bits():
    column, names = reviews(40)
    prints = {
        db.Dataset(Encoder(table, one_hot=hot)(table), names).fingerprint()
        for table in (column.to_frame(), column.to_frame())
        for hot in (True, False)
    }
    assert len(prints) == 1
