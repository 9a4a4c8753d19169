"""pyDVL's MSR with a free utility: samples folded per second. Runs in the baseline's own
environment.
"""

import json
import sys
import time
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
from pydvl.valuation.dataset import Dataset  # noqa: E402
from pydvl.valuation.methods import BanzhafValuation  # noqa: E402
from pydvl.valuation.samplers import MSRSampler  # noqa: E402
from pydvl.valuation.stopping import MaxTime  # noqa: E402
from pydvl.valuation.utility.base import UtilityBase  # noqa: E402


class Free(UtilityBase):
    def __init__(self):
        self.calls = 0
        self.data = None

    @property
    def training_data(self):
        return self.data

    def with_dataset(self, data, copy=True):
        self.data = data
        return self

    def __call__(self, sample):
        self.calls += 1
        return 0.5


n, seconds = int(sys.argv[1]), float(sys.argv[2])
utility = Free()
valuation = BanzhafValuation(
    utility, MSRSampler(batch_size=1, seed=0), is_done=MaxTime(seconds), progress=False
)
start = time.perf_counter()
valuation.fit(Dataset(x=np.zeros((n, 1)), y=np.zeros(n)))
print(json.dumps({"rate": utility.calls / (time.perf_counter() - start)}))
