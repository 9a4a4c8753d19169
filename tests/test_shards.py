"""Shares of a run in ledgers of their own: together they are the run, whatever its design."""

import math

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.run import evaluate

N = 12


def _noisy(coalitions, keys):
    return coalitions @ np.linspace(0, 1, N) + db.chance.uniform(keys, 1)[:, 0]


GAME = db.games.Function(N, _noisy, stochastic=True, name="noisy", call_size=4)


@pytest.mark.parametrize(
    ("notion", "estimator"),
    [
        (db.Banzhaf(), "reuse"),
        (db.Banzhaf(), "regression"),
        (db.Banzhaf(), "exact"),
        (db.LeaveOneOut(), "leave_one_out"),
        (db.Shapley(), "permutation"),
        (db.Shapley(), db.estimators.Permutation(truncation=0.3)),
    ],
    ids=str,
)
def test_shards_make_the_run(tmp_path, notion, estimator):
    how = {"estimator": estimator, "budget": 260, "repeats": 3, "seed": 5}
    whole = tmp_path / "whole.db"
    expected = db.value(GAME, notion, ledger=whole, **how)
    utilities = db.Ledger(whole).utilities()
    found = np.full(utilities.shape, np.nan)
    counts = []
    for number in (1, 2, 3, 4):
        path = tmp_path / f"{number}.db"
        counts.append(evaluate(GAME, notion, shard=(number, 4), ledger=path, **how))
        part = db.Ledger(path).utilities()
        index, repeat = np.nonzero(~np.isnan(part))
        assert np.isnan(found[index, repeat]).all()  # nobody else had it
        found[index, repeat] = part[index, repeat]
        assert counts[-1] == len(index) or "truncation" in str(estimator)
    np.testing.assert_array_equal(found, utilities)
    assert sum(counts) == np.count_nonzero(~np.isnan(utilities))
    block = math.lcm(db.designs.restore(db.Ledger(whole).design).unit, 4)
    assert max(counts) - min(counts) <= 3 * block
    again = evaluate(GAME, notion, shard=(2, 4), ledger=tmp_path / "2.db", **how)
    assert again == counts[1]
    assert expected.n_evaluations


def test_a_larger_budget_continues_a_shard(tmp_path):
    first = evaluate(GAME, shard=(2, 3), ledger=tmp_path / "a.db", estimator="reuse", budget=100)
    before = db.Ledger(tmp_path / "a.db").utilities()
    more = evaluate(GAME, shard=(2, 3), ledger=tmp_path / "a.db", estimator="reuse", budget=200)
    after = db.Ledger(tmp_path / "a.db").utilities()
    np.testing.assert_array_equal(before, after[: len(before)])
    assert more > first


def test_more_shards_than_calls_are_refused(tmp_path):
    """Else some of them would have nothing to do, without a word."""
    how = {"ledger": tmp_path / "a.db", "estimator": "reuse", "budget": 100}
    assert evaluate(GAME, shard=(25, 25), **how) == 4
    with pytest.raises(db.InvalidInput, match=r"25 shards at most.*of 4 coalitions.*got 26"):
        evaluate(GAME, shard=(1, 26), **how)


@pytest.mark.parametrize("shard", [(0, 3), (4, 3), (1.0, 2), "1/2", (1, 2, 3)])
def test_shards_that_are_none(shard):
    with pytest.raises(db.InvalidInput, match="number of a share"):
        evaluate(GAME, shard=shard, ledger=None)
