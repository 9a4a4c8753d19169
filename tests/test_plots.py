"""Pictures and small tables of an estimate."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.diagnostics import history
from databanzhaf.ledger import read_evaluations

mpl.use("agg")
WORTH = np.linspace(-1, 1, 30)


@pytest.fixture
def run():
    ledger = db.Ledger()
    game = db.games.Function(
        30,
        lambda c, keys: c @ WORTH + db.chance.uniform(keys, 1)[:, 0],
        stochastic=True,
        name="thirty",
    )
    return db.value(game, budget=600, ledger=ledger), ledger


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_all_values_are_drawn_in_order(run):
    estimate, _ = run
    ax = estimate.plot_values()
    drawn = np.sort(np.concatenate([line.get_ydata() for line in ax.get_lines()[:2]]))
    np.testing.assert_allclose(drawn, np.sort(estimate.values))
    crosses = ax.get_lines()[1].get_ydata()
    assert len(crosses) == len(db.applications.flagged(estimate, fdr=0.05)) > 0
    assert ax.figure is not None


def test_the_lowest_are_named_with_their_intervals(run):
    estimate, _ = run
    ax = estimate.plot_intervals(count=7)
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        str(player) for player in estimate.ranking()[:7]
    ]
    np.testing.assert_allclose(ax.get_lines()[0].get_xdata(), np.sort(estimate.values)[:7])


@pytest.mark.parametrize(
    "notion",
    [
        db.Banzhaf(),
        db.Shapley(),
        db.Beta(4, 1),
        db.WeightedBanzhaf(0.3),
        db.Semivalue(lambda n: -np.arange(n) / n, name="mine"),
    ],
    ids=lambda notion: notion.name,
)
def test_convergence_is_that_of_the_checkpoints(notion):
    ledger = db.Ledger()
    game = db.games.Function(30, lambda c: c @ WORTH, name="thirty")
    estimate = db.value(game, notion, budget=620, ledger=ledger)
    ax = estimate.plot_convergence(ledger)
    counts = ax.get_lines()[0].get_xdata()
    assert counts[-1] == estimate.n_evaluations
    last = history(read_evaluations(ledger), estimate)[-1]
    assert np.array_equal(last.estimate.values, estimate.values)
    np.testing.assert_equal(ax.get_lines()[0].get_ydata()[-1], last.stability)


def test_what_is_unknown_is_drawn_without_intervals():
    estimate = db.value(
        db.games.Function(5, lambda c: c.sum(axis=1), name="five"),
        db.LeastCore(),
        estimator="least_core",
        budget=30,
    )
    estimate.plot_values()
    estimate.plot_intervals()
    assert "unknown" in estimate._repr_html_()
    with pytest.raises(db.InvalidInput, match="two checkpoints"):
        db.value(db.games.Table([0, 0, 0, 1])).plot_convergence(
            db.Evaluations(db.designs.Exhaustive(2), [0, 1, 2, 3], np.zeros((4, 1)))
        )


def test_the_small_table_is_escaped_and_says_who_is_suspect():
    data = db.Dataset(
        np.eye(12), [0, 1] * 6, np.eye(12), [0, 1] * 6, groups=[f"<b>{i}</b>" for i in range(12)]
    )
    estimate = db.value(db.games.Network(data, (), epochs=2), budget=300)
    html = estimate._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "300 evaluations" in html
    few = db.value(db.games.Function(3, lambda c: c @ [-1.0, 0.0, 1.0], name="three"))._repr_html_()
    assert few.count("<tr>") == 4
    assert few.count("suspect") == 1


def test_a_fitted_valuator_shows_its_values_and_another_its_diagram():
    valuator = db.DataBanzhaf("logistic", budget=50)
    assert "sk-" in valuator._repr_html_()
    valuator.fit(np.random.default_rng(0).normal(size=(20, 2)), [0, 1] * 10)
    assert "banzhaf values of 20 players" in valuator._repr_html_()
    assert "banzhaf values" in valuator._repr_mimebundle_()["text/html"]
    assert "DataBanzhaf" in repr(valuator)


def test_without_matplotlib_the_way_to_it_is_told(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(db.BackendUnavailable, match=r"pip install 'databanzhaf\[plots\]'"):
        run[0].plot_values()
