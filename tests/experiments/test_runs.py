"""The experiments that need data, at a tiny scale, on made-up data of the same form."""

import json
import os
import shutil
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import databanzhaf as db
from databanzhaf import loop
from databanzhaf.experiments import (
    Setting,
    baselines,
    draw_values,
    image_runs,
    instability,
    ledgers,
    mislabel_detection,
    outcome,
    protocol,
    reproduce,
    score_table,
    stability_runs,
    top_bottom,
    weighted_training,
)
from databanzhaf.experiments.parallel import in_processes


def lines_of(setting, experiment):
    """The file of scores, its lines of one experiment, and the others."""
    path = setting.out / score_table.FILE
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    ours = [line for line in lines if line["experiment"] == experiment]
    return path, ours, [line for line in lines if line not in ours]


@pytest.fixture
def setting(tmp_path, monkeypatch):
    """A folder of small sets under the paper's names, and results beside it."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    for name, columns in (("pol", 6), ("cpu", 4)):
        y = np.arange(3000) % 2
        X = rng.normal(size=(3000, columns)) + 1.5 * y[:, None]
        np.savez(folder / f"{name}.npz", X=X.astype(np.float32), y=y)
    for name, shape in (("mnist", (28, 28)), ("cifar10_10class", (32, 32, 3))):
        parts = {}
        for part, n in (("train", 1000), ("test", 2200)):
            y = np.arange(n) % 10
            X = rng.integers(0, 100, (n, *shape)) + 15 * y.reshape(-1, *([1] * len(shape)))
            parts |= {f"X_{part}": X.astype(np.uint8), f"y_{part}": y}
        np.savez(folder / f"{name}.npz", **parts)
    monkeypatch.setenv("DATABANZHAF_DATA", str(folder))
    return Setting(scale=0.001, device="cpu", out=tmp_path / "out")


def test_a_draw_is_balanced_disjoint_flipped_and_scaled(setting):
    draw = protocol.draw("pol", 0, setting)
    assert [len(part) for part in (draw.y, draw.y_val, draw.y_test)] == [200, 200, 2000]
    assert draw.flipped[:20].all()
    assert not draw.flipped[20:].any()
    for y in (np.where(draw.flipped, 1 - draw.y, draw.y), draw.y_val, draw.y_test):
        assert y.mean() == 0.5
    np.testing.assert_allclose(draw.X.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(draw.X.std(axis=0), 1, atol=1e-5)
    rows = [tuple(row) for part in (draw.X, draw.X_val, draw.X_test) for row in part.tolist()]
    assert len(set(rows)) == len(rows)
    again, other = protocol.draw("pol", 0, setting), protocol.draw("pol", 1, setting)
    assert np.array_equal(again.X, draw.X)
    assert not np.array_equal(other.X, draw.X)
    images = protocol.draw("mnist", 0, setting, rows=100)
    assert images.X.shape == (100, 1, 28, 28)
    assert images.X.max() <= 1


def test_the_two_tables_share_their_runs_and_an_interrupted_one_goes_on(setting, monkeypatch):
    table = Setting(scale=setting.scale, device="cpu", out=setting.out, datasets=("pol",), draws=2)
    asked = []
    utility = db.games.Network.utility

    def counting(self, coalitions, keys):
        asked.append(len(keys))
        if len(asked) == 37:  # in the second draw
            raise KeyboardInterrupt
        return utility(self, coalitions, keys)

    monkeypatch.setattr(draw_values, "REPEATS", 2)
    monkeypatch.setattr(
        loop, "LARGEST_PIECE", 1
    )  # a whole call is a batch, so that the interruption loses that call alone
    monkeypatch.setattr(db.games.Network, "utility", counting)
    with pytest.raises(KeyboardInterrupt):
        reproduce("mislabel_detection", table)
    before = sum(asked[:-1])
    asked[:] = [0] * 41  # no second interruption
    page = reproduce("mislabel_detection", table).read_text()
    resumed = sum(asked)
    asked[:] = [0] * 41
    whole = Setting(
        scale=table.scale,
        device="cpu",
        out=setting.out.parent / "whole",
        datasets=("pol",),
        draws=2,
    )
    assert (
        reproduce("mislabel_detection", whole).read_text().split("## How")[0]
        == page.split("## How")[0]
    )
    assert before > 0
    assert before + resumed == sum(asked)
    asked[:] = [0] * 41
    reproduce("weighted_training", table)
    trainings = sum(asked)
    # Two draws; 11 columns, uniform, and two with whole epochs, two vectors each; five networks: no
    # valuation anew.
    assert trainings == 2 * (11 + 1 + 2) * 2 * 5
    lines = [json.loads(line) for line in (table.out / score_table.FILE).read_text().splitlines()]
    [found] = [
        line["scores"]
        for line in lines
        if line["experiment"] == "mislabel_detection" and line["draw"] == 0
    ]
    assert all(0 <= one <= 1 for column in found.values() for one in column)
    # The classes lie far apart: flipped rows are easily found.
    assert np.mean(found["cv_logistic"]) > 0.5
    assert "first draw" in page
    assert "all draws" in page


def test_tables_do_not_depend_on_the_number_of_processes(setting):
    found = []
    columns = {name: name for name in ("banzhaf", "loo", "beta_4_1", "weighted_0.1")}
    for jobs in (1, 2):
        table = Setting(
            scale=setting.scale,
            device="cpu",
            out=setting.out.parent / f"jobs{jobs}",
            datasets=("pol", "cpu"),
            draws=1,
            jobs=jobs,
        )
        found.append(
            score_table.collect(
                "trial",
                table,
                columns,
                lambda valued, _: {name: list(rows[:, 0]) for name, rows in valued.values.items()},
                1,
            )
        )
        assert len((table.out / score_table.FILE).read_text().splitlines()) == 2
    (one, work), (two, work_of_two) = found
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert [count for count, _ in work.values()] == [count for count, _ in work_of_two.values()]
    assert one["mean"].nunique() == 2 * len(columns)


def test_a_worker_that_dies_or_fails_says_so_and_ends_with_the_first_process(monkeypatch):
    assert sorted(in_processes(abs, [(-1,), (2,), (-3,)], 2)) == [1, 2, 3]
    for folder in ("one", "another"):  # the processes of the first call serve the second
        monkeypatch.setenv("DATABANZHAF_DATA", folder)
        assert set(in_processes(os.getenv, [("DATABANZHAF_DATA",)] * 4, 2)) == {folder}
    with pytest.raises(db.InvalidInput, match="no such thing"):
        list(in_processes(_refuse, [(1,), (2,)], 2))
    with pytest.raises(db.BackendUnavailable, match="--jobs 2"):
        list(in_processes(os._exit, [(1,), (2,)], 2))
    script = (
        "from databanzhaf.experiments.parallel import in_processes; import os, time\n"
        # one write: lines of two processes stay apart
        "def part(n): os.write(1, b'%d\\n' % os.getpid()); time.sleep(60)\n"
        "list(in_processes(part, [(1,), (2,)], 2))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as first:
        lines = [first.stdout.readline() for _ in range(2)]
        first.kill()
    workers = [int(line) for line in lines]
    deadline = time.monotonic() + 20
    while any(map(_lives, workers)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(map(_lives, workers))


def _refuse(number):
    raise db.InvalidInput("no such thing")


def _lives(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_the_best_notion_is_compared_with_the_best_baseline(setting, monkeypatch):
    every = [*draw_values.COLUMNS, *mislabel_detection.WITHOUT_VALUES]
    scores = {("pol", name): 0.4 for name in every} | {("mnist", name): 0.2 for name in every}
    scores["pol", "shapley"], scores["mnist", "cv_forest"] = 0.6, 0.8
    table = pd.DataFrame(
        [
            {
                "dataset": data,
                "draw": 0,
                "method": name,
                "mean": mean,
                "std_error": 0.0,
                "coalitions": 9,
            }
            for (data, name), mean in scores.items()
        ]
    )
    monkeypatch.setattr(score_table, "collect", lambda *arguments: (table, {}))
    found = mislabel_detection.run(replace(setting, datasets=("pol",), draws=1))
    question = found.claims[-1]
    assert "Shapley" in question.claim
    assert "10-fold forest" in question.claim
    assert question.ours == "on 1 of 2 datasets; mean 0.400 against 0.600"
    assert found.notes[4].startswith(
        "Mean over 2 datasets, best first: 10-fold forest 0.600, Shapley 0.400, Banzhaf 0.300,"
    )


@pytest.mark.parametrize("lost", [(), ("pol-*", "values-*")], ids=["nothing", "ledgers and values"])
def test_columns_that_come_later_are_evaluated_and_scored_alone(setting, monkeypatch, lost):
    monkeypatch.setattr(draw_values, "REPEATS", 2)
    table = replace(setting, datasets=("pol",), draws=1)
    trained, simple = [], []
    utility, scores = db.games.Network.utility, baselines.scores

    def note(self, coalitions, keys):
        trained.append(len(keys))
        return utility(self, coalitions, keys)

    monkeypatch.setattr(db.games.Network, "utility", note)
    monkeypatch.setattr(
        baselines, "scores", lambda *arguments: simple.append(1) or scores(*arguments)
    )

    def collected(name, scored, score, without):
        columns = {column: by for column, by in scored.items() if column not in without}
        found, work = score_table.collect(
            name, table, columns, lambda valued, missing: score(valued, table, missing), 1
        )
        assert list(found["method"]) == list(columns)
        return found.set_index("method"), sum(count for count, _ in work.values())

    def run(*without):
        trained.clear()
        simple.clear()
        return (
            collected("f1", mislabel_detection.SCORED, mislabel_detection.f1_scores, without),
            collected("accuracy", weighted_training.SCORED, weighted_training.accuracies, without),
        )

    later = ["beta_4_1", "weighted_0.1"]
    before = run(*later)
    for path in (path for pattern in lost for path in (setting.out / "ledgers").glob(pattern)):
        path.unlink()
    after = run()
    # 200 coalitions of the one; of the other a permutation, where the ledger is lost. Then two
    # vectors of each, five networks a vector.
    assert sum(trained) == 2 * (200 + (201 if lost else 0)) + 2 * 2 * 5
    assert not simple
    for (old, did), (new, done) in zip(before, after, strict=True):
        pd.testing.assert_frame_equal(new.drop(index=later), old, check_exact=True)
        assert done == did + 2 * 200
    if not lost:  # the values' own file knows all of it too
        ledgers = draw_values.value_draw("pol", 0, table).work.values()
        assert sum(count for work in ledgers for count, _ in work.values()) == after[0][1]
    for number, name in enumerate(("f1", "accuracy")):
        path, [whole], others = lines_of(setting, name)
        for column in ("knn_shapley", "uniform", "uniform_whole", "banzhaf_whole"):
            if column in whole["scores"]:
                fewer = {key: one for key, one in whole["scores"].items() if key != column}
                lines = [*others, {**whole, "scores": fewer}]
                path.write_text("\n".join(map(json.dumps, lines)))
                again = run()
                pd.testing.assert_frame_equal(again[number][0], after[number][0], check_exact=True)
    run()
    assert not trained
    assert not simple


def test_lenet_has_one_draw_and_fewer_coalitions_for_our_columns(setting, monkeypatch):
    ten = replace(setting, scale=1, draws=10)
    assert [
        len(draw_values.draws(ten, name)) for name in ("mnist", "fmnist", "cifar10", "pol")
    ] == [
        1,
        1,
        10,
        10,
    ]
    asked = {}

    def note(setting, parts, game, notion, *, budget, repeats, **how):
        asked[parts] = budget, repeats
        raise StopIteration

    monkeypatch.setattr(ledgers, "value", note)
    for name in ("mnist", "pol"):
        data = protocol.draw(name, 0, ten, rows=100)
        for column in ("banzhaf", "loo", "weighted_0.1"):
            with pytest.raises(StopIteration):
                draw_values._evaluate([column], 0, ten, data, 0.02)
    assert asked == {
        ("mnist", "draw0", "banzhaf"): (2000, 5),
        ("mnist", "draw0", "loo"): (2000, 2),
        ("mnist", "draw0", "weighted_0.1"): (800, 5),
        ("pol", "draw0", "banzhaf"): (2000, 5),
        ("pol", "draw0", "loo"): (2000, 5),
        ("pol", "draw0", "weighted_0.1"): (2000, 5),
    }


def test_scores_by_another_rule_are_computed_anew(setting, monkeypatch, capsys):
    monkeypatch.setattr(draw_values, "REPEATS", 2)
    table = Setting(scale=setting.scale, device="cpu", out=setting.out, datasets=("pol",))

    def scored(rule, number):
        found, work = score_table.collect(
            "trial",
            table,
            {"banzhaf": "banzhaf"},
            lambda valued, missing: {"banzhaf": [number]},
            rule,
        )
        assert list(work) == [outcome.hardware(table)]
        return found["mean"].tolist()

    assert scored(1, 0.25) == [0.25]
    assert scored(1, 0.5) == [0.25]
    assert not capsys.readouterr().err
    assert scored(2, 0.5) == [0.5]
    path, [whole], _ = lines_of(setting, "trial")
    assert capsys.readouterr().err.startswith("The scores of pol, draw 0, in ")
    parts = [
        {"work": None},
        {"work": {"a": [1]}},
        {"work": {"banzhaf": {"a": [1]}}},
        {"scores": {}},
        {"scores": {"banzhaf": []}},
        {"scores": {"banzhaf": ["1"]}},
        {"coalitions": []},
        {"coalitions": {"banzhaf": "x"}},
    ]
    for damaged in (
        "",
        "[]",
        "{",
        '{"rule": 2}',
        json.dumps({**whole, "rule": 3}),
        *(json.dumps({**whole, **part}) for part in parts),
    ):
        path.write_text(damaged)
        assert scored(2, 0.75) == [0.75]
        path.write_text(json.dumps(whole))
        assert scored(2, 0.75) == [0.5]


@pytest.mark.parametrize(
    "notes",
    [
        "nonsense",
        '{"work": 5}',
        '{"work": {"a": 3}}',
        '{"work": {"a": [1]}}',
        '{"work": {"a": ["x", 1]}}',
        '{"work": {"a": [Infinity, 1]}}',
    ],
)
def test_damaged_notes_of_the_work_are_no_work_of_a_known_machine(setting, notes):
    def work():
        ledgers.value(
            setting,
            ("toy",),
            db.games.Function(3, lambda coalitions: coalitions.sum(axis=1), name="size"),
            db.Banzhaf(),
            estimator="reuse",
            budget=20,
        )
        return ledgers.work(setting, [("toy",)])

    assert work() == {outcome.hardware(setting): [20, pytest.approx(0, abs=10)]}
    (setting.out / "ledgers" / "toy-0.machines.json").write_text(notes)
    assert work() == {ledgers.UNKNOWN: [20, pytest.approx(0, abs=10)]}


def test_values_of_other_data_or_in_a_damaged_file_are_computed_anew(setting, monkeypatch):
    monkeypatch.setattr(draw_values, "REPEATS", 2)
    first = draw_values.value_draw("pol", 0, setting)
    [path] = (setting.out / "ledgers").glob("values-pol-*.npz")
    whole = path.read_bytes()
    stream = whole[:60] + bytes([255] * 20) + whole[80:]  # zlib.error
    for damaged in (b"", whole[:1000], b"nonsense", stream):
        path.write_bytes(damaged)
        np.testing.assert_array_equal(
            draw_values.value_draw("pol", 0, setting).values["banzhaf"], first.values["banzhaf"]
        )
        assert path.read_bytes()[:2] == b"PK"
    data = setting.out.parent / "data" / "pol.npz"
    with np.load(data) as parts:
        X, y = parts["X"], parts["y"]
    np.savez(data, X=X[::-1], y=y)
    with pytest.raises(db.LedgerMismatch):  # the ledgers are of the other data
        draw_values.value_draw("pol", 0, setting)
    np.savez(data, X=np.full_like(X, np.nan), y=y)
    with pytest.raises(db.InvalidInput, match="the dataset pol"):
        draw_values.value_draw("pol", 0, setting)
    np.savez(data, X=X[:100], y=y[:100])
    with pytest.raises(
        db.InvalidInput, match="the dataset pol is not the paper's \\(50 further rows"
    ):
        draw_values.value_draw("pol", 0, setting)


def test_each_value_vector_is_trained_with_keys_of_its_own_by_one_batch_an_epoch_or_whole_epochs(
    setting, monkeypatch
):
    monkeypatch.setattr(draw_values, "REPEATS", 3)
    asked = []

    def note(self, coalitions, keys):
        asked.append((self.recipe.batches_per_epoch, tuple(keys.tolist()), self.rows.weights.sum()))
        return np.full(len(keys), len(asked) / 100)

    monkeypatch.setattr(db.games.Network, "utility", note)
    values = np.random.default_rng(0).normal(size=(3, 200))
    valued = draw_values.Valued(
        protocol.draw("pol", 0, setting), {"banzhaf": values}, {"banzhaf": 9}, {}
    )
    found = weighted_training.accuracies(
        valued, setting, ["banzhaf", "uniform", "banzhaf_whole", "uniform_whole"]
    )
    assert {column: np.round(scores, 2).tolist() for column, scores in found.items()} == {
        "banzhaf": [0.01, 0.02, 0.03],
        "uniform": [0.04, 0.05, 0.06],
        "banzhaf_whole": [0.07, 0.08, 0.09],
        "uniform_whole": [0.1, 0.11, 0.12],
    }
    batches, keys, weights = zip(*asked, strict=True)
    assert batches == (1,) * 6 + (None,) * 6
    assert (
        len({key for three in keys[:3] for key in three}) == 15
    )  # five trainings for each of three vectors
    assert (
        keys[:3] == keys[3:6] == keys[6:9] == keys[9:]
    )  # the columns are compared on the same keys
    np.testing.assert_allclose(weights[3:6], 200)
    assert len(set(weights[:3])) == 3


def test_a_ledger_tells_whose_work_it_holds_also_after_a_kill(setting, monkeypatch):
    game = db.games.Function(6, lambda coalitions: coalitions.sum(axis=1), call_size=4)
    parts = ("trial",)

    def run(machine, budget):
        monkeypatch.setattr(ledgers, "hardware", lambda setting: machine)
        return ledgers.value(setting, parts, game, db.Banzhaf(), estimator="reuse", budget=budget)

    def whose():
        return {machine: count for machine, (count, _) in ledgers.work(setting, [parts]).items()}

    run("first", 10)
    run("second", 25)
    assert whose() == {"first": 10, "second": 15}
    notes = setting.ledger(*parts).with_suffix(".machines.json")
    before = notes.read_text()
    run("third", 30)
    notes.write_text(
        before.replace('"last": "second"', '"last": "third"')
    )  # as kill -9 leaves it: begun, and not noted
    assert whose() == {"first": 10, "second": 15, "third": 5}
    notes.write_text("nonsense")
    assert whose() == {ledgers.UNKNOWN: 30}
    assert ledgers.evaluations(setting, parts, 20, 1).indices.tolist() == list(
        range(20)
    )  # the ledger has more
    setting.ledger(*parts).unlink()
    run("fourth", 7)
    assert whose() == {"fourth": 7}


def test_a_run_continues_from_the_piece_that_another_machine_left(setting, monkeypatch):
    y = np.arange(40) % 2
    X = np.random.default_rng(0).normal(size=(40, 3)) + y[:, None]
    game = db.games.Network(db.Dataset(X, y, X, y), (4,), epochs=1, device="cpu")
    parts = ("trial",)
    kept = setting.out / "evaluations" / "trial-0.npz"

    def run(machine, budget, game=game):
        monkeypatch.setattr(ledgers, "hardware", lambda setting: machine)
        return ledgers.value(
            setting, parts, game, db.Banzhaf(), piecewise=True, estimator="reuse", budget=budget
        )

    run("first", 10)
    shutil.rmtree(setting.out / "ledgers")  # another machine has the piece only
    utilities = np.load(kept)["utilities"]
    assert utilities.shape == (10, 1)
    values = run("second", 25).values
    assert {m: n for m, (n, _) in ledgers.work(setting, [parts]).items()} == {
        "first": 10,
        "second": 15,
    }
    np.testing.assert_array_equal(np.load(kept)["utilities"][:10], utilities)
    whole = db.Ledger(keep="utilities")
    direct = db.value(game, estimator="reuse", budget=25, seed=0, ledger=whole)
    np.testing.assert_array_equal(values, direct.values)
    shutil.rmtree(setting.out / "ledgers")
    other = db.games.Network(db.Dataset(X + 1, y, X, y), (4,), epochs=1, device="cpu")
    with pytest.raises(db.InvalidInput, match="other data"):
        run("third", 30, other)
    longer = db.games.Network(db.Dataset(X, y, X, y), (4,), epochs=2, device="cpu")
    with pytest.raises(db.InvalidInput, match="trained or scored in another way"):
        run("third", 30, longer)
    kept.write_bytes(b"nonsense")
    with pytest.raises(db.InvalidInput, match="must hold the evaluations"):
        run("third", 30)


def test_columns_without_a_scale_are_zero_and_far_numbers_are_cut(setting):
    y = np.arange(3000) % 2
    X = np.random.default_rng(1).normal(size=(3000, 3))
    rng = np.random.default_rng([0, 0, zlib.crc32(b"pol")])
    train, held, test = protocol._balanced(y, (200, protocol.VALIDATION, protocol.TEST), rng)
    X[:, 2] = 1e7 * ~np.isin(np.arange(3000), train)  # constant in the training rows
    X[held[0], 1], X[test[0], 1] = 1e9, -1e9
    np.savez(setting.out.parent / "data" / "pol.npz", X=X, y=y)
    drawn = protocol.draw("pol", 0, setting)
    assert not any(part[:, 2].any() for part in (drawn.X, drawn.X_val, drawn.X_test))
    assert (drawn.X_val[0, 1], drawn.X_test[0, 1]) == (50, -50)
    scaled = (X[train, 0] - X[train, 0].mean()) / X[train, 0].std()
    np.testing.assert_allclose(drawn.X[:, 0], scaled, atol=1e-6)


def test_values_by_columns_are_those_of_direct_calls(setting, monkeypatch):
    monkeypatch.setattr(draw_values, "REPEATS", 2)
    valued = draw_values.value_draw("pol", 0, setting)
    game = protocol.network(valued.draw.judged_by_validation(), "pol", setting)
    direct = db.value(
        game,
        db.Beta(4, 1),
        estimator="permutation",
        budget=valued.coalitions["beta_4_1"],
        repeats=2,
    )
    np.testing.assert_array_equal(valued.values["beta_4_1"], direct.values_by_repeat)
    larger = Setting(scale=0.01, device="cpu", out=setting.out)
    assert (
        draw_values.value_draw("pol", 0, larger).coalitions["beta_4_1"]
        > valued.coalitions["beta_4_1"]
    )
    for path in (setting.out / "ledgers").glob("values-*.npz"):
        path.unlink()
    again = draw_values.value_draw(
        "pol", 0, setting
    )  # the ledger now has more, which a smaller scale leaves aside
    np.testing.assert_array_equal(again.values["beta_4_1"], direct.values_by_repeat)
    assert len(valued.vectors("banzhaf")) == 2
    assert (
        game.utility(np.zeros((1, 200), bool), np.zeros(1, np.uint64))[0] == 0.5
    )  # U(empty) = 1 / classes


@pytest.mark.parametrize("name", ["instability", "top_bottom"])
def test_images_over_several_trainings(setting, monkeypatch, name):
    monkeypatch.setattr(
        protocol,
        "small_cnn",
        lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10)),
    )
    monkeypatch.setattr(image_runs, "EPOCHS", 1)
    monkeypatch.setattr(image_runs, "SEEDS", 2)
    page = reproduce(name, setting).read_text()
    assert "This only shows that the experiment runs" in page
    if name == "instability":
        assert "explain Banzhaf's index? | not asked | as here: " in page
        ways = image_runs.other_ways(setting)
        assert set(ways) == {"as here", *image_runs.OTHER_WAYS}
        used = {way.values["banzhaf"].tobytes() for way in ways.values()}
        assert len(used) == len(ways) - 1  # a trial has no 500 held-out images to take
    images = image_runs.value_images(setting)
    assert images.values["banzhaf"].shape == (2, 50)
    assert images.agreement("banzhaf") == pytest.approx(
        db.ranking.spearman(*images.values["banzhaf"]), nan_ok=True
    )


@pytest.mark.parametrize(
    ("coalitions", "noise", "verdicts", "shares"),
    [
        # Noise of training in the values of LOO, Shapley and Banzhaf; whether the paper's indices
        # of the three and Banzhaf's lead hold; whether Banzhaf's lead in top and bottom shares
        # holds, and that the others' are low.
        (50_000, (50, 50, 0.2), [True, True, True, True], [True, True]),
        (
            50_000,
            (50, 50, 1.5),
            [True, True, False, True],
            [False, True],
        ),  # ahead in the shares, but not by far
        (50_000, (50, 50, 50), [True, True, False, False], [False, True]),
        (50_000, (0.2, 50, 0.2), [False, True, True, False], [False, False]),
        (
            2_000,
            (50, 50, 0.2),
            [None, None, True, True],
            [True, None],
        ),  # fewer would agree less: what they show is there
        (2_000, (50, 50, 50), [None, None, None, None], [None, None]),
        (2_000, (0.2, 50, 0.2), [False, None, True, False], [None, False]),
    ],
)
def test_fewer_coalitions_neither_refute_stability_nor_confirm_the_lack_of_it(
    setting, monkeypatch, coalitions, noise, verdicts, shares
):
    n = 2000
    rng = np.random.default_rng(1)
    worth = rng.normal(size=n)
    values = {
        name: worth + much * rng.normal(size=(5, n))
        for name, much in zip(image_runs.NOTIONS, noise, strict=True)
    }
    draw = protocol.Draw("", None, np.zeros(n), None, None, None, None, np.arange(n) < n // 10)
    images = image_runs.Images(
        draw, values, dict.fromkeys(values, coalitions), (values["banzhaf"], values["banzhaf"]), ""
    )
    monkeypatch.setattr(image_runs, "value_images", lambda setting: images)
    monkeypatch.setattr(image_runs, "other_ways", lambda setting: {})
    whole = Setting(scale=1.0, device="cpu", out=setting.out)
    found = instability.run(whole)
    assert [claim.holds for claim in found.claims if claim.asked_by_paper] == verdicts
    assert any("a projection, not a measurement" in note for note in found.notes) == (
        coalitions < 50_000
    )
    assert len(found.table) == 3 * n
    assert [claim.holds for claim in top_bottom.run(whole).claims] == shares


def test_more_coalitions_give_the_agreement_that_was_projected():
    n, now, later, noise = 300, 1500, 15_000, 2.0
    rng = np.random.default_rng(4)
    design, worth = db.designs.Coin(n, 0), rng.normal(size=n) / np.sqrt(n)
    utilities = (design.coalitions(np.arange(later)) @ worth)[:, None] + noise * rng.normal(
        size=(later, 5)
    )
    everything = db.Evaluations(design, np.arange(later), utilities, True, None)

    def values(evaluations):
        return db.estimate(evaluations, estimator="reuse").values_by_repeat

    some = everything.only(everything.indices < now)
    halves = tuple(values(part) for part in ledgers.halves(some))
    draw = protocol.Draw("", None, np.zeros(n), None, None, None, None, np.zeros(n, bool))
    images = image_runs.Images(draw, {"banzhaf": values(some)}, {"banzhaf": now}, halves, "")
    measured = np.corrcoef(values(everything))[np.triu_indices(5, 1)].mean()
    expected, low, high = images.projected(later)
    assert low < measured < high < low + 0.4
    assert (
        images.agreement("banzhaf") < low
    )  # so that the projection says more than what was measured
    assert image_runs.project(values(some), halves, now, now, np.arange(n)) == pytest.approx(
        np.cov(values(some))[np.triu_indices(5, 1)].mean() / np.diag(np.cov(values(some))).mean()
    )
    assert expected == image_runs.project(values(some), halves, now, later, np.arange(n))
    pure = rng.normal(
        size=(40, 15, n)
        # values that are nothing but noise: estimates of variances turn negative, correlations do
        # not
    )
    found = [
        image_runs.project(each[:5], (each[5:10], each[10:]), now, later, np.arange(n))
        for each in pure
    ]
    assert 0 <= min(found) <= max(found) <= 1
    still = np.zeros((5, n))
    assert np.isnan(image_runs.project(still, (still, still), now, later, np.arange(n)))


def test_convergence_on_images(setting, monkeypatch):
    monkeypatch.setattr(
        protocol, "lenet", lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    )
    assert "Banzhaf, MSR" in reproduce("convergence_ranking", setting).read_text()


@pytest.mark.parametrize("name", ["rank_stability", "rank_stability_smoothing"])
def test_rank_stability(setting, monkeypatch, name):
    monkeypatch.setattr(stability_runs, "reference_and_ks", lambda setting: (2, (1, 2)))
    monkeypatch.setattr(stability_runs, "kept_repeats", lambda name, setting: 4)
    only = Setting(scale=setting.scale, device="cpu", out=setting.out, datasets=("cpu",))
    page = reproduce(name, only)
    text, table = page.read_text(), pd.read_csv(page.with_suffix(".csv"))
    assert "least core" in text
    assert "undecided" in text
    assert set(table["groups"]) <= {0, 2, 4}
    # Written again from what was kept: nothing is trained.
    for folder in ("ledgers", "evaluations"):
        shutil.rmtree(only.out / folder)
    monkeypatch.setattr(ledgers, "value", None)
    reproduce(name, only)
    pd.testing.assert_frame_equal(pd.read_csv(page.with_suffix(".csv")), table)
    assert "- hardware: " + text.split("- hardware: ")[1].split("\n")[0] in page.read_text()
