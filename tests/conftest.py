import numpy as np
import pytest
from hypothesis import settings

# The same examples in every run: a failure must not depend on the day.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.fixture
def rng():
    return np.random.default_rng(20230425)
