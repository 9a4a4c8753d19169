"""Every experiment that is quick, at a tiny scale: its files, and one known fact each."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, spearmanr, ttest_ind
from sklearn.metrics import f1_score
from typer.testing import CliRunner

import databanzhaf as db
from databanzhaf.cli import app
from databanzhaf.experiments import (
    NAMES,
    Setting,
    agreements,
    baselines,
    comparison,
    convergence_exact,
    convergence_ranking,
    draw_values,
    ledgers,
    margins,
    mislabel_detection,
    noise_1d,
    outcome,
    pieces,
    rank_stability_tiny,
    registry,
    reproduce,
    sample_bounds,
    score_table,
    stability_runs,
    summarise,
    ten_points,
    weighted_training,
)
from databanzhaf.experiments.lines import Lines
from databanzhaf.experiments.notions import NOTIONS
from databanzhaf.files import replacing, write_text
from tests.closed_forms import noisy_additive


@pytest.fixture
def setting(tmp_path):
    return Setting(scale=0.001, out=tmp_path)


@pytest.mark.parametrize(
    "name", ["margins", "convergence_exact", "noise_1d", "sample_bounds", "rank_stability_tiny"]
)
def test_an_experiment_writes_a_page_a_figure_and_a_table(name, setting, monkeypatch):
    monkeypatch.setattr(rank_stability_tiny, "REPETITIONS", 2)
    monkeypatch.setattr(rank_stability_tiny, "SIGMAS", (0.001, 0.1))
    monkeypatch.setattr(sample_bounds, "COUNTS", (100, 1000))
    page = reproduce(name, setting)
    text = page.read_text()
    for part in (
        "## How it was run",
        f"databanzhaf reproduce {name}",
        "scale: 0.001",
        "seed: 0",
        "![",
        f"({name}.csv)",
    ):
        assert part in text
    for suffix in (".csv", ".svg"):
        assert page.with_suffix(suffix).stat().st_size > 100
    assert not list(setting.out.glob(".*"))
    summary = summarise(setting.out).read_text()
    for claim in json.loads((setting.out / f"{name}.claims.json").read_text())["claims"]:
        assert claim["claim"] in summary


def test_the_summary_counts_what_holds_what_does_not_and_what_cannot_be_told(tmp_path):
    verdicts = [True, True, True, False, None, None]
    claims = [
        {"claim": f"c{i}", "paper": "", "ours": "", "holds": holds, "asked_by_paper": True}
        for i, holds in enumerate(verdicts)
    ]
    claims += [{"claim": "q", "paper": "", "ours": "", "holds": False, "asked_by_paper": False}]
    (tmp_path / "margins.claims.json").write_text(
        json.dumps({"title": "t", "scale": 1, "claims": claims})
    )
    text = summarise(tmp_path).read_text()
    assert "Of 6 claims 3 hold here, 1 do not, and 2 are undecided" in text
    assert (
        text.index("| c5 |")
        < text.index("## Questions that the paper does not ask")
        < text.index("| q |")
    )


def test_margins_are_the_closed_forms(setting):
    table = margins.run(setting).table.pivot(index="n", columns="notion", values="log10_margin")
    n = table.index.to_numpy()
    np.testing.assert_allclose(table["loo"], 0, atol=1e-12)  # tau
    np.testing.assert_allclose(table["banzhaf"], (n / 2 - 1) * np.log10(2), atol=1e-9)
    for notion in (db.Banzhaf(), db.Shapley(), db.LeaveOneOut()):
        distance, difference = margins.flipping_path(notion)
        assert distance[-1] == pytest.approx(db.theory.safety_margin(notion, 3))
        at_tie = np.interp(0, -difference, distance)
        assert at_tie == pytest.approx(db.theory.safety_margin(notion, 3) / np.sqrt(2))


def test_the_ten_points_are_scored_as_scikit_learn_would():
    """Accuracies of plain gradient descent and of LogisticRegression without a penalty agree but
    for a few test points.
    """
    from sklearn.linear_model import LogisticRegression

    X, y = ten_points.points(0, 10)
    X_test, y_test = ten_points.points(1_000_003, ten_points.N_TEST)
    assert set(y) == {0, 1}
    assert X.mean(axis=0) == pytest.approx([0.1, -0.1], abs=1.2)
    utilities = ten_points.utilities(0)
    assert utilities[0] == 0.5
    full = LogisticRegression(C=np.inf, max_iter=1000).fit(X, y).score(X_test, y_test)
    assert utilities[-1] == pytest.approx(full, abs=0.1)


def test_estimates_of_the_ten_points_come_closer_to_the_exact_values(setting):
    table = convergence_exact.run(Setting(scale=1.0, out=setting.out)).table
    for estimator in ("reuse", "marginal"):
        part = table[table["estimator"] == estimator]
        assert part["l2_error"].iloc[-1] < 0.6 * part["l2_error"].iloc[0]
    exact = db.value(ten_points.game(0)).values[convergence_exact.PLAYER]
    assert (table["exact"] == exact).all()


def test_noise_is_derived_rightly(setting):
    table = noise_1d.run(setting).table
    np.testing.assert_allclose(
        table["theta variance, simulated"], table["theta variance, derived"], rtol=0.05
    )
    np.testing.assert_allclose(table["loss mean, simulated"], table["loss mean, derived"], rtol=0.1)


def test_knn_shapley_is_the_shapley_value_of_the_nearest_neighbours(rng):
    """Against every coalition."""
    X, X_val = rng.normal(size=(7, 2)), rng.normal(size=(3, 2))
    y, y_val = rng.integers(0, 2, 7), rng.integers(0, 2, 3)
    k = 2

    def utility(coalitions):
        out = []
        for member in coalitions:
            rows = np.flatnonzero(member)
            score = 0.0
            for row, label in zip(X_val, y_val, strict=True):
                near = rows[np.argsort(((X[rows] - row) ** 2).sum(axis=1), kind="stable")[:k]]
                score += (y[near] == label).sum() / k
            out.append(score / len(y_val))
        return np.array(out)

    exact = db.value(db.games.Function(7, utility, name="neighbours"), db.Shapley()).values
    np.testing.assert_allclose(baselines.knn_shapley(X, y, X_val, y_val, k), exact, atol=1e-12)


def test_f1_and_spearman_are_scikit_learns_and_scipys(rng):
    found = db.value(
        db.games.Function(50, lambda c: c @ rng.normal(size=50), name="fifty"), budget=300
    )
    wrong = rng.random(50) < 0.1
    flags = np.zeros(50, bool)
    flags[np.argsort(found.values)[:5]] = True
    assert mislabel_detection.f1(found, wrong) == pytest.approx(f1_score(wrong, flags))
    other = rng.normal(size=50)
    assert db.ranking.spearman(found.values, other) == pytest.approx(
        spearmanr(found.values, other).statistic
    )


def test_agreement_rises_with_the_repeats():
    game, _ = noisy_additive(20, noise=1.0)
    ledger = db.Ledger()
    db.value(game, budget=400, repeats=70, estimator="reuse", ledger=ledger)
    groups, reference = (
        db.Evaluations(db.designs.Coin(20, 0), np.arange(400), ledger.utilities()[:, part])
        for part in (slice(0, 20), slice(20, 70))
    )
    found = agreements.of_round(groups, reference, "banzhaf", (1, 20))
    assert [len(each) for each in found.values()] == [20, 1]
    assert np.mean(found[1]) < found[20][0] <= 1
    values = [
        db.estimate(
            replace(part, utilities=part.utilities.mean(axis=1, keepdims=True)), estimator="reuse"
        ).values
        for part in (groups, reference)
    ]
    assert found[20][0] == pytest.approx(spearmanr(*values).statistic)


def test_each_block_of_repeats_is_the_reference_of_another():
    assert agreements.rounds(70, 50) == [((0, 20), (20, 70))]
    assert agreements.rounds(150, 50) == [
        ((0, 50), (50, 100)),
        ((50, 100), (100, 150)),
        ((100, 150), (0, 50)),
    ]
    assert agreements.rounds(149, 50) == [((0, 50), (50, 100)), ((50, 100), (0, 50))]


def test_the_luck_of_a_reference_counts():
    """All groups of a round share its reference, so the rounds differ by more than groups do."""
    luck, own = np.array([[0.1], [0.3], [0.2]]), np.array([[-0.01, 0.01]])
    line = stability_runs.summarised(1, 0.5 + luck + own)
    assert line["spearman"] == pytest.approx(0.7)
    assert line["std_error"] == pytest.approx(luck.std(ddof=1) / np.sqrt(3))
    assert (line["freedom"], line["groups"]) == (2, 6)
    one = stability_runs.summarised(1, np.array([[0.1, 0.3, 0.2, 0.4]]))
    assert one["std_error"] == pytest.approx(np.std([0.1, 0.3, 0.2, 0.4], ddof=1) / 2)
    assert one["freedom"] == 3
    single = stability_runs.summarised(20, np.array([[0.5]]))
    assert (single["spearman"], single["groups"]) == (0.5, 1)
    assert np.isnan([single["std_error"], single["freedom"]]).all()
    none = stability_runs.summarised(20, np.empty((0, 0)))
    assert np.isnan([none["spearman"], none["std_error"]]).all()


def test_the_doubt_about_a_lead_is_welchs():
    ours, theirs = np.array([0.5, 0.7, 0.6]), np.array([0.4, 0.5, 0.3, 0.4, 0.6, 0.2])
    table = pd.DataFrame(
        {"notion": notion, **stability_runs.summarised(1, rounds[:, None])}
        for notion, rounds in (("banzhaf", ours), ("least_core", theirs))
    )
    interval = ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    doubt = stability_runs._doubt(table)["least_core"].iloc[0]
    assert doubt == pytest.approx((interval.high - interval.low) / 2)
    still = pd.DataFrame(
        {"notion": notion, **stability_runs.summarised(1, np.full((3, 1), number))}
        for notion, number in (("banzhaf", 0.5), ("loo", 0.25))
    )
    assert (stability_runs._doubt(still) == 0).all(axis=None)


def test_rounds_that_are_kept_are_not_found_again(tmp_path):
    rng, calls = np.random.default_rng(0), []
    evaluations = db.Evaluations(db.designs.Coin(8, 0), np.arange(40), rng.normal(size=(40, 6)))
    key = {"experiment": "trial", "notion": "banzhaf", "seed": 0}
    file = tmp_path / agreements.FILE

    def collect(stamp="these data", ks=(1, 2), rounds=3, **other):
        def run():
            calls.append(stamp)
            return (evaluations, evaluations), {"a machine": [240, 1.5]}

        return agreements.collect(
            file, key | other, stamp, agreements.rounds(2 * rounds, 2), ks, run
        )

    first, work = collect()
    assert work == {"a machine": [240, 1.5]}
    assert (first[1].shape, first[2].shape) == ((3, 2), (3, 1))
    second, third = (
        replace(evaluations, utilities=evaluations.utilities[:, part])
        for part in (slice(2, 4), slice(4, 6))
    )
    wanted = agreements.of_round(second, third, "banzhaf", (1, 2))
    np.testing.assert_allclose(first[1][1], wanted[1], atol=1e-6)
    again, work = collect()
    np.testing.assert_array_equal(again[1], first[1])
    assert (work, len(calls)) == ({"a machine": [240, 1.5]}, 1)
    # A damaged line costs its round.
    good = file.read_bytes().splitlines(keepends=True)
    changes = [
        {"others": [4]},
        {"others": None},
        {"agreement": None},
        {"agreement": {"1": [], "2": []}},
        {"agreement": {"1": [0.5, float("nan")], "2": [0.5]}},
        {"agreement": {"1": ["a", "b"], "2": [0.5]}},
        {"work": 3},
    ]
    lines = [json.dumps(json.loads(good[2]) | change).encode() for change in changes]
    for damaged in (b'{"experiment": ', b"\xff\n", b"3", *lines):
        before = len(calls)
        file.write_bytes(b"".join(good[:2]) + damaged)
        np.testing.assert_array_equal(collect()[0][2], first[2])
        assert len(calls) == before + 1, damaged
        collect()
        assert len(calls) == before + 1
    for changes in ({"stamp": "other data"}, {"seed": 1}, {"ks": (1, 3)}):
        before = len(calls)
        collect(**changes)
        assert len(calls) == before + 1, changes


def test_commands_that_share_a_file_lose_no_line(tmp_path):
    lines = Lines(tmp_path / "kept.jsonl", ("who", "number"))

    def add(who):
        for number in range(20):
            lines.add({"who": who, "number": number, "found": [who, number]})

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(add, range(3)))
    assert len(lines.read()) == 60
    lines.add({"who": 1, "number": 7, "found": "better"})
    assert len(lines.read()) == 60
    assert lines.read()[lines.place({"who": 1, "number": 7})]["found"] == "better"


def test_a_piece_of_some_repeats_says_who_made_them(tmp_path):
    utilities = np.arange(14.0).reshape(7, 2)
    ledger: Any = SimpleNamespace(
        is_new=False, count=lambda: 14, utilities=lambda: utilities, design={}, game={"data": "x"}
    )
    pieces.write(tmp_path / "a.npz", ledger, {"A": [7, 1.0], "B": [7, 3.0]}, 1)
    kept = pieces.read(tmp_path / "a.npz")
    assert kept["utilities"].shape == (7, 1)
    assert kept["work"] in ({"A": [4, 0.5], "B": [3, 1.5]}, {"A": [3, 0.5], "B": [4, 1.5]})
    pieces.write(tmp_path / "a.npz", ledger, {"A": [14, 1.0]})
    assert pieces.read(tmp_path / "a.npz")["utilities"].shape == (7, 2)


def test_more_coalitions_for_lenet_leave_the_image_features_as_they_are():
    def scales(image_scale):
        setting = Setting(scale=1.0, device="cpu", image_scale=image_scale)
        return tuple(draw_values.scale_of(name, 0, setting) for name in ("mnist", "cifar10", "pol"))

    assert [scales(share) for share in (0.002, 0.02, 0.05, 0.5)] == [
        (0.002, 0.02, 1.0),
        (0.02, 0.2, 1.0),
        (0.05, 0.2, 1.0),
        (0.5, 0.5, 1.0),
    ]


def test_a_k_without_a_standard_error_beats_nobody():
    table = pd.DataFrame(
        {
            "coalitions": which,
            "k": k,
            "notion": notion,
            "spearman": {"banzhaf": 0.8, "least_core": ahead}.get(notion, 0.5),
            "std_error": error,
            "freedom": 19 if k == 1 else 1,
        }
        for which in ("same", "other")
        for k, ahead, error in ((1, 0.7, 0.01), (20, 0.81, np.nan))
        for notion in stability_runs.EVERY
    )
    claims = stability_runs._claims(table, "The ranking", True)
    assert [claim.holds for claim in claims] == [True, True, None, None, False, True]
    assert "highest at 1 of 2 values of k; beaten at 0, by 95% intervals" in claims[2].ours
    verdicts = [
        stability_runs._claims(
            table.assign(std_error=0.0018, freedom=np.where(table["k"] == 1, 19, freedom)),
            "The ranking",
            True,
        )[2].holds
        for freedom in (1, 4)
    ]
    assert verdicts == [None, False]  # two groups tell little, even where they nearly agree
    assert {claim.holds for claim in stability_runs._claims(table, "The ranking", False)} == {None}


def test_noise_correlates_with_its_own_continuation_as_the_page_says(rng):
    draws = rng.normal(size=(4000, 300))
    found = db.ranking.spearman(draws[:, :100].mean(axis=1), draws.mean(axis=1))
    assert found == pytest.approx(convergence_ranking.pure_noise(100, 300), abs=0.03)


def test_noise_with_heavy_tails_can_agree_less_than_normal_noise(rng):
    draws = rng.laplace(size=(100, 11, 500)) ** 3
    found = [spearmanr(each[:9].sum(axis=0), each.sum(axis=0)).statistic for each in draws]
    assert np.mean(found) + 4 * np.std(found) / 10 < convergence_ranking.pure_noise(9, 11)


def test_the_law_of_the_loss_is_the_simulated_one(setting, rng):
    x, x_val = rng.normal(size=12), rng.normal(size=8)
    y, y_val = rng.normal(size=12), rng.normal(size=8)
    theta = noise_1d.descend(rng.normal(0, noise_1d.SIGMA, 20_000), x, y, 5)
    loss = ((np.outer(theta, x_val) - y_val) ** 2).sum(axis=1)
    assert kstest(loss, noise_1d.law(x, y, x_val, y_val, 5).cdf).pvalue > 0.001


def test_halves_share_no_coalition_but_those_that_a_design_must_have():
    def evaluations(design, m):
        return db.Evaluations(design, np.arange(m), np.zeros((m, 3)), True, None)

    first, second = ledgers.halves(evaluations(db.designs.Coin(6, 0), 11))
    assert sorted([*first.indices, *second.indices]) == list(range(11))
    first, second = ledgers.halves(evaluations(db.designs.Permutation(6, 0), 21))
    assert (first.indices.tolist(), second.indices.tolist()) == (
        list(range(7)),
        list(range(7, 21)),
    )  # permutations are not cut
    first, second = ledgers.halves(evaluations(db.designs.Anchored(6, 0), 10))
    assert set(first.indices) & set(second.indices) == {0, 1}
    assert set(first.indices) | set(second.indices) == set(range(10))
    assert ledgers.halves(evaluations(db.designs.Permutation(6, 0), 7)) is None
    assert ledgers.halves(evaluations(db.designs.LeaveOneOut(6), 7)) is None


def test_pure_noise_agrees_with_the_same_coalitions_and_not_with_others():
    game = db.games.Function(
        30, lambda coalitions: np.random.default_rng(5).normal(size=len(coalitions)), call_size=600
    )
    ledger = db.Ledger()
    db.value(game, budget=600, estimator="reuse", ledger=ledger)
    utilities = np.tile(ledger.utilities(), (1, 2))  # no training noise: only the sample decides
    whole = db.Evaluations(db.designs.Coin(30, 0), np.arange(600), utilities)
    same = agreements.of_round(whole, whole, "banzhaf", (1,))[1]
    np.testing.assert_allclose(same, [1, 1])
    other = agreements.of_round(*ledgers.halves(whole), "banzhaf", (1,))[1]
    assert np.abs(other).max() < 0.5


def test_several_processes_may_write_the_same_file(tmp_path):
    path = tmp_path / "page.md"
    with replacing(path) as first:
        first.write_text("first")
        write_text(path, "second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    with suppress(OSError), replacing(path) as third:
        third.write_text("thi")
        raise OSError("the disk is full")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]  # no temporary file is left


def test_pages_say_which_datasets_were_left_out():
    (told,) = [
        line
        for line in weighted_training.differs(Setting(device="cpu"))
        if line.startswith("Left out")
    ]
    assert told.endswith("mnist, fmnist, cifar10.")
    named = weighted_training.differs(Setting(device="cpu", datasets=("pol",)))
    assert not any(line.startswith("Left out") for line in named)
    # Nor do they speak of datasets that are not there.
    assert not any(
        name in line
        for line in named
        for name in ("vehicle", "apsfail", "cifar10", "LeNet", "1,000 rows", "Image sets")
    )
    of_all = " ".join(weighted_training.differs(Setting(device="cpu", datasets=draw_values.KNOWN)))
    assert all(
        name in of_all
        for name in (
            "vehicle",
            "apsfail",
            "cifar10",
            "LeNet (mnist, fmnist) has one draw",
            "1,000 rows",
            "Image sets",
        )
    )


def test_one_dataset_has_no_spread_over_datasets():
    paper = comparison.paper_table("paper_mislabel_f1.csv")
    means = pd.DataFrame(0.2, index=pd.Index(["pol", "wind"]), columns=list(NOTIONS))
    means["banzhaf"] = [0.3, 0.4]
    _, one = comparison.overall_claims("Mislabels", means[:1], paper, list(NOTIONS), tell=True)
    assert one.ours.endswith("Banzhaf less the best other +0.100")
    assert one.holds is None
    _, two = comparison.overall_claims("Mislabels", means, paper, list(NOTIONS), tell=True)
    assert two.ours.endswith(
        "Banzhaf less the best other +0.150 ± 0.100 (two standard errors over the datasets)"
    )
    assert two.holds is True
    assert (
        comparison.mean_over(means[:1], ["banzhaf", "loo"])
        == "Mean over 1 dataset, best first: Banzhaf 0.300, LOO 0.200."
    )


def test_the_terminal_says_which_datasets_were_left_out(monkeypatch, capsys):
    monkeypatch.setattr(draw_values.protocol, "check", lambda names: None)
    monkeypatch.setattr(score_table, "draws", lambda setting, name: range(0))
    score_table.collect("trial", Setting(device="cpu"), {}, None, 1)
    assert (
        capsys.readouterr().err
        == "Left out, since there is no GPU: mnist, fmnist, cifar10. `--datasets` can name them.\n"
    )
    score_table.collect("trial", Setting(device="cpu", datasets=("pol",)), {}, None, 1)
    assert not capsys.readouterr().err


def test_the_summary_says_how_many_draws_there_were():
    found = {"scale": 1.0, "seed": 0, "datasets": 13, "draws": 10}
    assert registry._origin("x", found).endswith(
        "13 datasets, up to 10 draws of the data, further ones at a scale of 0.1"
    )
    assert "draws" not in registry._origin("x", {**found, "draws": 1})


def test_the_first_draw_is_told_by_itself_where_it_has_more_coalitions():
    table = pd.DataFrame(
        [
            {"dataset": name, "draw": draw, "method": method, "mean": mean}
            for name, draw, method, mean in [
                ("a", 0, "banzhaf", 0.5), ("a", 0, "shapley", 0.25),
                ("a", 1, "banzhaf", 0.0), ("a", 1, "shapley", 1.0),
                ("b", 0, "banzhaf", 0.75), ("b", 0, "shapley", 0.5),
            ]
        ]
    )  # fmt: skip
    (told,) = comparison.first_draw(table, ["banzhaf", "shapley"], Setting(scale=1.0, draws=2))
    assert "mean over 2 datasets: Banzhaf 0.625, Shapley 0.375; best on: Banzhaf 2." in told
    (compared,) = comparison.first_draw(
        table, ["banzhaf"], Setting(scale=1.0, draws=2), {"shapley": "a baseline"}
    )
    assert compared.endswith("The columns without values there: a baseline 0.375.")
    assert comparison.first_draw(table, ["banzhaf", "shapley"], Setting(scale=0.1, draws=2)) == ()
    assert comparison.first_draw(table, ["banzhaf", "shapley"], Setting(scale=1.0, draws=1)) == ()


def test_claims_over_all_datasets_count_wins_and_means():
    columns = ["banzhaf", "shapley", "loo"]
    means = pd.DataFrame(
        {"banzhaf": [0.9, 0.5, 0.7], "shapley": [0.8, 0.5, 0.6], "loo": [0.1, 0.1, 0.65]},
        index=["pol", "wind", "cpu"],
    )
    assert comparison.wins(means, columns).to_dict() == {
        "banzhaf": 2,
        "shapley": 0,
        "loo": 0,
    }  # on wind two are equally good
    paper = comparison.paper_table("paper_mislabel_f1.csv")
    most, overall = comparison.overall_claims("Finding", means, paper, columns, tell=True)
    assert (most.ours, most.holds) == ("of 3: Banzhaf 2, tie 1", True)
    # Banzhaf leads Shapley by 0.1, 0 and 0.1: 0.067 with a standard error of 0.033.
    assert overall.ours == (
        "Banzhaf 0.700, Shapley 0.633, LOO 0.283; Banzhaf less the best other +0.067 ± 0.067 (two "
        "standard errors over the datasets)"
    )
    clear = means.assign(banzhaf=means["banzhaf"] + [0, 0.05, 0])
    assert comparison.overall_claims("Finding", clear, paper, columns, tell=True)[1].holds
    close = means.assign(banzhaf=means["banzhaf"] - [0, 0.05, 0])
    assert comparison.overall_claims("Finding", close, paper, columns, tell=True)[1].holds is None
    # From the paper's table by hand: Banzhaf .470, .360, .350; Shapley .440, .570, .460; LOO .097,
    # .073, .107.
    assert most.paper == "of 3: Shapley 2, Banzhaf 1"
    assert (
        overall.paper
        == "said in the text; means of its table: Shapley 0.490, Banzhaf 0.393, LOO 0.092"
    )
    exchanged = clear.rename(columns={"shapley": "banzhaf", "banzhaf": "shapley"})
    for tell, verdict in ((True, False), (False, None)):
        assert [
            claim.holds
            for claim in comparison.overall_claims("Finding", exchanged, paper, columns, tell=tell)
        ] == [verdict, verdict]


def test_the_papers_tables_come_along():
    for file, methods in (("paper_mislabel_f1.csv", 7), ("paper_weighted_accuracy.csv", 8)):
        table = comparison.paper_table(file)
        assert set(table["dataset"]) == set(draw_values.KNOWN)
        assert (table.groupby("dataset").size() == methods).all()


def test_bad_input_names_what_there_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = lambda *words: CliRunner().invoke(app, ["reproduce", *words])  # noqa: E731
    Path("taken").write_text("a file")
    listed = run("--list")
    assert listed.exit_code == 0
    assert all(name in listed.stdout for name in NAMES)
    for words, said in (
        (("beauty",), "margins"),
        (("mislabel_detection", "--datasets", "iris"), "pol"),
        (("margins", "--scale", "2"), "--scale must"),
        (("weighted_training", "--draws", "0"), "--draws must"),
        (("weighted_training", "--jobs", "-2"), "--jobs must"),
        (("all", "--datasets", "pol"), "belongs to one experiment"),
        (("margins", "--datasets", "pol"), "has no datasets to choose"),
        (("margins", "--seed", "-5"), "--seed must"),
        (("margins", "--seed", str(2**32)), "2**32 - 1"),
        (("margins", "--device", "quantum"), "--device must"),
        (("margins", "--device", "cudafoo"), "--device must"),
        (("margins", "--device", "cuda:99"), "no CUDA device"),
        (("weighted_training", "--datasets", " ,"), "must name some"),
        (("margins", "--image-scale", "0"), "--image-scale must"),
        (("margins", "--out", "taken"), "cannot be written to"),
    ):
        refused = run(*words)
        assert refused.exit_code == 2, words
        assert said in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1
    fine = run("MARGINS ", "--out", "fine")
    assert fine.exit_code == 0
    assert "margins.md (the paper's claims: 4 yes, 2 no)" in fine.stdout
    for text in (
        "{",
        "{}",
        '{"claims": 3}',
        '{"claims": [3]}',
        '{"scale": 1, "claims": [{"holds": true}]}',
    ):
        Path("fine/noise_1d.claims.json").write_text(text)
        with pytest.raises(db.LedgerFailed, match=r"noise_1d\.claims\.json` is damaged"):
            summarise(Path("fine"))
    damaged = run("margins", "--out", "fine")
    assert damaged.exit_code == 2
    assert "noise_1d.claims.json` is damaged" in damaged.stderr
    monkeypatch.setenv("DATABANZHAF_DATA", str(tmp_path))
    absent = run("mislabel_detection", "--datasets", "pol", "--scale", "0.001")
    assert absent.exit_code == 2
    assert "DATABANZHAF_DATA" in absent.stderr
    assert not Path("results").exists() or not list(Path("results").glob("*.md"))


def test_markdown_keeps_its_columns():
    table = outcome.as_markdown(pd.DataFrame({"a|b": ["x|y"], "n": [1.23456]}))
    assert table.splitlines()[2] == "| x\\|y | 1.235 |"
