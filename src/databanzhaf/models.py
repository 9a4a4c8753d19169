"""Models and metrics by name: what the shell and the scikit-learn face understand."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import BackendUnavailable, InvalidInput, first_line, short
from databanzhaf.games import Boosting, Forest, Learner, Network
from databanzhaf.games.inputs import resolve_device
from databanzhaf.protocols import Game

ENGINES = ("forest", "boosting", "mlp", "logistic", "linear")
ESTIMATORS = ("knn",)
# How scikit-learn's scorers of regressions begin; some would take class numbers for amounts.
_FOR_NUMBERS = (
    "r2",
    "explained_variance",
    "max_error",
    "d2_absolute",
    "neg_mean",
    "neg_root",
    "neg_median",
)
# Whole numbers of more different values are numbers to predict.
MOST_WHOLE_CLASSES = 20
_LEARNER_METRICS = {
    "log_loss": "neg_log_loss",
    "mse": "neg_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "rmse": "neg_root_mean_squared_error",
    "auc": "roc_auc",
}


def is_classification(labels: Any) -> bool:
    """Texts, truth values and few whole numbers are classes; everything else is a number to
    predict.
    """
    labels = np.asarray(labels)
    if labels.dtype.kind not in "iuf":
        return True
    numbers = labels.astype(np.float64)
    return bool((numbers == np.round(numbers)).all()) and len(np.unique(numbers)) <= min(
        MOST_WHOLE_CLASSES, max(2, len(numbers) // 2)
    )


def named_metric(metric: str | None, dataset: Dataset, *, network: bool) -> str | None:
    """The library's or scikit-learn's own name of a metric; more is better for all of them."""
    if metric is None:
        return None
    if metric == "f1":
        # scikit-learn's "f1" is that of the class 1, which other labels do not have.
        return "f1" if set(np.unique(dataset.y).tolist()) <= {0, 1} else "f1_macro"
    if metric == "auc" and len(np.unique(dataset.y)) > 2:
        return "roc_auc_ovr"
    built_in = network and metric in ("log_loss", "mse")
    return metric if built_in else _LEARNER_METRICS.get(metric, metric)


def make_game(
    model: Any,
    dataset: Dataset,
    *,
    classifies: bool,
    metric: Any = None,
    threads: int | None = None,
    device: str = "auto",
) -> Game:
    """The game of a model: a name, "package.module:factory", a scikit-learn estimator, or a
    function that makes a torch module.
    """
    if isinstance(model, str) and ":" in model:
        model = _imported(model)
    if isinstance(model, str) and model in ENGINES:
        return _engine(model, dataset, classifies, metric, threads, device)
    if isinstance(model, str):
        model = _estimator(model, classifies)
    if hasattr(model, "named_parameters") and not inspect.isclass(model):
        raise InvalidInput(
            "each training needs a torch module of its own",
            got="one module",
            remedy="Pass its class, or a function that makes it: lambda: Net().",
        )
    if inspect.isclass(model) or (callable(model) and not hasattr(model, "fit")):
        make = _ready(model, dataset, classifies)
        try:
            made = make()
        except (Exception, SystemExit) as error:
            raise InvalidInput(
                f"the model's factory {_name(model)} failed ({type(error).__name__}: {error})",
                remedy="Fix the factory.",
            ) from error
        if not hasattr(made, "fit"):
            return _module(make, made, dataset, classifies, metric, device)
        model = made
    game = Learner(
        model,
        dataset,
        named_metric(metric, dataset, network=False) if isinstance(metric, str) else metric,
    )
    _try_metric(game)
    return game


def _engine(
    model: str, dataset: Dataset, classifies: bool, metric: Any, threads: int | None, device: str
) -> Game:
    wrong = {"logistic": not classifies, "linear": classifies}
    if wrong.get(model):
        kind, other = ("numbers", "linear") if model == "logistic" else ("classes", "logistic")
        raise InvalidInput(
            f'the model "{model}" is not for a target of {kind}',
            remedy=f'Use "{other}" or "forest".',
        )
    if metric is not None and not isinstance(metric, str):
        raise InvalidInput(
            f'the metric of "{model}" must be a name',
            got=short(metric),
            remedy="Pass a scikit-learn estimator to use a scorer.",
        )
    score = named_metric(metric, dataset, network=True)
    game: Game
    if model in ("forest", "boosting"):
        if device != "auto" and resolve_device(device) != "cpu":
            raise InvalidInput(
                f"the model {model} runs on the CPU",
                got=f"device {short(device)}",
                remedy="Use the model mlp there, or leave the device out.",
            )
        engine: Any = Forest if model == "forest" else Boosting
        loss = {} if classifies else {"loss": "squared"}
        game = engine(dataset, **loss, metric=score, threads=threads)
    else:
        hidden = (100,) if model == "mlp" else ()
        game = Network(
            dataset,
            hidden,
            loss="cross_entropy" if classifies else "squared",
            metric=score,
            threads=threads,
            device=device,
        )
    _try_metric(game)
    return game


def _try_metric(game: Any) -> None:
    """Score a model that knows nothing, so that a metric that cannot score these rows is found
    before any training.
    """
    name = game.fingerprint()["metric"]
    if game.classifies and name.startswith(_FOR_NUMBERS):
        raise InvalidInput(
            f"the metric {name} is for numbers, and the target has classes",
            remedy="Try probability or accuracy.",
        )
    if game.dataset.judges is not None:  # a mean over rows can score any of them
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            score = game.score(_know_nothing(game).pack())
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(
            f"the metric {name} cannot score the validation rows ({first_line(error)})",
            remedy="Choose another metric.",
        ) from error
    if not np.isfinite(score):
        raise InvalidInput(
            f"the metric {name} is {score} on the validation rows for a model that knows nothing",
            remedy="Choose another metric.",
        )


def _know_nothing(game: Any) -> Any:
    """The answers of a model that gives every class one probability, or the mean target."""
    from databanzhaf.games.predictions import ClassifierAnswers, RegressorAnswers

    n, classes = len(game.dataset.y_val), game.classes
    if not game.classifies:
        return RegressorAnswers({"predict": np.full(n, float(np.mean(game.dataset.y)))})
    even = np.full((n, len(classes)), 1 / len(classes))
    decision = np.zeros(n) if len(classes) == 2 else np.zeros((n, len(classes)))
    return ClassifierAnswers(
        {"predict": np.full(n, classes[0]), "predict_proba": even, "decision_function": decision},
        classes,
    )


def _module(
    make: Callable[..., Any],
    made: Any,
    dataset: Dataset,
    classifies: bool,
    metric: Any,
    device: str,
) -> Game:
    try:
        from torch import nn
    except ImportError as error:
        raise BackendUnavailable.missing("a torch module needs", "torch", "torch") from error
    if not isinstance(made, nn.Module):
        raise InvalidInput(
            "a model's factory must return a scikit-learn estimator or a torch module",
            got=f"{type(made).__name__}",
            remedy=f"Check {make!r:.60}.",
        )
    from databanzhaf.games import Module

    loss = "cross_entropy" if classifies else "squared"
    score = named_metric(metric, dataset, network=True) if isinstance(metric, str) else metric
    game = Module(make, dataset, loss=loss, metric=score, device=device)
    _try_metric(game)
    return game


def _ready(make: Callable[..., Any], dataset: Dataset, classifies: bool) -> Callable[[], Any]:
    """The factory; one with two parameters gets the numbers of columns and outputs."""
    try:
        needed = [
            p
            for p in inspect.signature(make).parameters.values()
            if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        ]
    except ValueError:  # a builtin without a signature
        needed = []
    if len(needed) == 2:
        return partial(
            make, int(dataset.X.shape[1]), len(np.unique(dataset.y)) if classifies else 1
        )
    if needed:
        raise InvalidInput(
            f"a model's factory must take nothing, or (columns, outputs); {_name(make)} needs "
            f"{len(needed)} "
            "arguments",
            remedy="Wrap it in a function.",
        )
    return make


def _name(make: Any) -> str:
    return f"`{getattr(make, '__name__', make)}`"


def _imported(model: str) -> Any:
    module, _, name = model.partition(":")
    if not module or not name:
        raise InvalidInput(
            "a model of your own is package.module:factory",
            got=repr(model),
            remedy="Name the module and the factory.",
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # whatever the user's module does when it is imported
        raise InvalidInput(
            f"the model `{model}` cannot be imported ({type(error).__name__}: {error})",
            remedy="Write package.module:factory, importable from the current folder.",
        ) from error
    if inspect.isbuiltin(found) or module.split(".")[0] in sys.stdlib_module_names:
        raise InvalidInput(
            f"the model `{model}` is part of Python, not a model",
            remedy="Write package.module:factory, where the factory returns an estimator or "
            "a torch module.",
        )
    return found


def _estimator(name: str, classifies: bool) -> Any:
    if name == "knn":
        from databanzhaf.neighbors import FewNeighborsClassifier, FewNeighborsRegressor

        return (FewNeighborsClassifier if classifies else FewNeighborsRegressor)()
    names = (*ENGINES, *ESTIMATORS)
    near = difflib.get_close_matches(name, names, 1)
    remedy = f"Did you mean {near[0]}?" if near else "Try forest."
    raise InvalidInput(
        f"the model must be one of {', '.join(names)}, or package.module:factory",
        got=repr(name),
        remedy=f"Write {name[:-3]}:factory." if name.endswith(".py") else remedy,
    )
