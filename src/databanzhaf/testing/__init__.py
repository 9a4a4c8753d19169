"""The conformance suites, for people who write their own game, design, estimator or evaluator.

Each check runs every promise of its protocol and raises `AssertionError` with the first one that is
broken. They need no test runner::

    from databanzhaf import testing

    def test_my_game():
        testing.check_game(MyGame())

The package's own implementations pass the same suites.
"""

from databanzhaf.testing.designs import check_design
from databanzhaf.testing.estimators import check_estimator
from databanzhaf.testing.evaluators import check_evaluator
from databanzhaf.testing.games import check_game

__all__ = ["check_design", "check_estimator", "check_evaluator", "check_game"]
