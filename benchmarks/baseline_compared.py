"""What cleanlab, pyDVL, OpenDataVal and a plain forest say of the rows of one file: for each method
a line of JSON with its values (low is suspect) and seconds. Runs in an environment of its own,
which `make .venv-compared/.ready` makes.

    python baseline_compared.py DATA.npz
"""

import contextlib
import io
import json
import logging
import sys
import time
import warnings

warnings.simplefilter("ignore")
logging.disable()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from cleanlab.classification import CleanLearning  # noqa: E402
from cleanlab.data_valuation import data_shapley_knn  # noqa: E402
from pydvl.valuation.dataset import Dataset  # noqa: E402
from pydvl.valuation.methods import (  # noqa: E402
    BanzhafValuation,
    DataOOBValuation,
    KNNShapleyValuation,
)
from pydvl.valuation.samplers import MSRSampler  # noqa: E402
from pydvl.valuation.scorers import SupervisedScorer  # noqa: E402
from pydvl.valuation.stopping import MaxSamples  # noqa: E402
from pydvl.valuation.utility import ModelUtility  # noqa: E402
from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import cross_val_predict  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.tree import DecisionTreeClassifier  # noqa: E402

with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    from opendataval import dataval
    from opendataval.metrics import accuracy
    from opendataval.model.api import ClassifierSkLearnWrapper

MODELS = 1000


def plain(X, y):
    """The probability of each row's own label, by 5-fold cross-validation."""
    said = cross_val_predict(RandomForestClassifier(random_state=0), X, y, method="predict_proba")
    return said[np.arange(len(y)), y]


def cleaned(model):
    def scores(X, y):
        return CleanLearning(model, seed=0).find_label_issues(X, y)["label_quality"].to_numpy()

    return scores


def cleanlab_neighbours(X, y):
    return data_shapley_knn(y, features=X, k=10)


def pydvl_oob(X, y):
    model = RandomForestClassifier(random_state=0).fit(X, y)
    return _values(DataOOBValuation(model).fit(Dataset(X, y)))


def pydvl_neighbours(X, y, X_val, y_val):
    valuation = KNNShapleyValuation(KNeighborsClassifier(5), Dataset(X_val, y_val), progress=False)
    return _values(valuation.fit(Dataset(X, y)))


def pydvl_banzhaf(X, y, X_val, y_val):
    model = LogisticRegression()
    scorer = SupervisedScorer("accuracy", Dataset(X_val, y_val), default=0.5, range=(0, 1))
    utility = ModelUtility(model, scorer, catch_errors=True)
    sampler = MSRSampler(batch_size=1, seed=0)
    stop = MaxSamples(sampler, MODELS)
    return _values(BanzhafValuation(utility, sampler, stop, progress=False).fit(Dataset(X, y)))


def _values(valuation):
    result = valuation.result
    values = np.empty(len(result))
    values[result.indices] = result.values
    return values


def open_data_val(evaluator, model=None):
    def values(X, y, X_val=None, y_val=None):
        if X_val is None:  # for the evaluators that do not use them
            X_val, y_val = X[:2], y[:2]
        given = [torch.tensor(X, dtype=torch.float32), _one_hot(y)]
        given += [torch.tensor(X_val, dtype=torch.float32), _one_hot(y_val)]
        made = evaluator()
        if model is not None:
            made.input_model(model()).input_metric(accuracy)
        return made.input_data(*given).train_data_values().evaluate_data_values()

    return values


def _one_hot(y):
    return torch.nn.functional.one_hot(torch.tensor(y), 2).float()


def _linear():
    return ClassifierSkLearnWrapper(LogisticRegression, 2)


def _tree():
    return ClassifierSkLearnWrapper(DecisionTreeClassifier, 2)


ALONE = {
    "scikit-learn: forest, own label's probability": plain,
    "cleanlab: forest": cleaned(RandomForestClassifier(random_state=0)),
    "cleanlab: its default, logistic regression": cleaned(None),
    "cleanlab: KNN-Shapley": cleanlab_neighbours,
    "pyDVL: Data-OOB, forest": pydvl_oob,
    "OpenDataVal: Data-OOB, trees": open_data_val(
        lambda: dataval.DataOob(MODELS, random_state=0), _tree
    ),
}
JUDGED = {
    "pyDVL: KNN-Shapley": pydvl_neighbours,
    "pyDVL: Banzhaf (MSR), logistic": pydvl_banzhaf,
    "OpenDataVal: KNN-Shapley": open_data_val(lambda: dataval.KNNShapley(random_state=0)),
    "OpenDataVal: LAVA": open_data_val(lambda: dataval.LavaEvaluator(random_state=0)),
    "OpenDataVal: Banzhaf (MSR), logistic": open_data_val(
        lambda: dataval.DataBanzhaf(MODELS, random_state=0), _linear
    ),
}

if __name__ == "__main__":
    with np.load(sys.argv[1]) as stored:
        X, y, held = stored["X"], stored["y"], stored["held"]
        checked = stored["X_checked"], stored["y_checked"]
    cases = [(name, "none", method, (X, y)) for name, method in ALONE.items()]
    for name, method in JUDGED.items():
        cases.append((name, "held out", method, (X[~held], y[~held], X[held], y[held])))
        cases.append((name, "checked", method, (X, y, *checked)))
    for name, judges, method, given in cases:
        start = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            values = method(*given)
        seconds = time.process_time() - start
        line = {"name": name, "judges": judges, "seconds": seconds, "values": np.ravel(values)}
        print(json.dumps({**line, "values": line["values"].astype(float).tolist()}), flush=True)
