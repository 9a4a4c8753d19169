"""pyDVL's MSR on coalitions and utilities from a file: writes its values beside it. Runs in the
baseline's own environment.
"""

import sys
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
from pydvl.valuation.dataset import Dataset  # noqa: E402
from pydvl.valuation.methods import BanzhafValuation  # noqa: E402
from pydvl.valuation.samplers import MSRSampler  # noqa: E402
from pydvl.valuation.stopping import NoStopping  # noqa: E402
from pydvl.valuation.types import Sample  # noqa: E402
from pydvl.valuation.utility.base import UtilityBase  # noqa: E402


class Listed(MSRSampler):
    """MSR with coalitions from a list."""

    def __init__(self, coalitions):
        super().__init__(batch_size=1, seed=0)
        self.coalitions = coalitions

    def generate(self, indices):
        for coalition in self.coalitions:
            yield Sample(None, np.flatnonzero(coalition))


class Lookup(UtilityBase):
    def __init__(self, coalitions, utilities):
        self.known = {
            coalition.tobytes(): utility
            for coalition, utility in zip(coalitions, utilities, strict=True)
        }
        self.n_players, self.data = coalitions.shape[1], None

    @property
    def training_data(self):
        return self.data

    def with_dataset(self, data, copy=True):
        self.data = data
        return self

    def __call__(self, sample):
        coalition = np.zeros(self.n_players, dtype=bool)
        coalition[sample.subset] = True
        return self.known[coalition.tobytes()]


source, target = sys.argv[1:]
with np.load(source) as stored:
    coalitions, utilities = stored["coalitions"], stored["utilities"]
valuation = BanzhafValuation(
    Lookup(coalitions, utilities), Listed(coalitions), is_done=NoStopping(), progress=False
)
n = coalitions.shape[1]
valuation.fit(Dataset(x=np.zeros((n, 1)), y=np.zeros(n)))
result = valuation.result
values = np.empty(n)
values[result.indices] = result.values
np.save(target, values)
