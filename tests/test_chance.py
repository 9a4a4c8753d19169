import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import chance

MASK = 2**64 - 1


def scalar_mix(x):
    """SplitMix64's finaliser on Python integers, from the published constants."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def scalar_fold(key, number):
    return scalar_mix(key ^ scalar_mix((number + 0x9E3779B97F4A7C15) & MASK))


def test_mix_is_splitmix64():
    # The first outputs of SplitMix64 from state 1234567, as published with Java's and Vigna's
    # reference code.
    state = [(1234567 + (i + 1) * 0x9E3779B97F4A7C15) & MASK for i in range(3)]
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert chance.mix(np.array(state, np.uint64)).tolist() == published


def test_keys_and_words_equal_the_scalar_definition():
    for seed, stream, index, repeat in [
        (0, 1, 0, 0),
        (7, 2, 123456789, 3),
        (2**64 - 1, 1, 2**40, 49),
    ]:
        key = scalar_fold(scalar_fold(scalar_fold(scalar_fold(0, seed), stream), index), repeat)
        keys = chance.keys(seed, stream, np.array([index]), np.array([repeat]))
        assert keys.tolist() == [key]
        assert chance.words(keys, 3, start=2)[0].tolist() == [
            scalar_fold(key, c) for c in (2, 3, 4)
        ]
        assert chance.uniform(keys, 1)[0, 0] == (scalar_fold(key, 0) >> 11) / 2**53
        word = scalar_fold(key, 1)
        assert chance.bits(keys, 130)[0, 64:128].tolist() == [
            bool(word >> j & 1) for j in range(64)
        ]


def test_words_do_not_depend_on_the_batch():
    keys = chance.keys(3, 1, np.arange(1000))
    whole = chance.words(keys, 50)
    assert np.array_equal(
        whole, np.vstack([chance.words(keys[i : i + 7], 50) for i in range(0, 1000, 7)])
    )
    assert np.array_equal(whole[:, 20:], chance.words(keys, 30, start=20))


def test_one_fact_changed_changes_half_of_the_bits():
    base = chance.keys(0, 1, np.arange(5000))
    for other in (
        chance.keys(1, 1, np.arange(5000)),
        chance.keys(0, 2, np.arange(5000)),
        chance.keys(0, 1, np.arange(5000), 1),
    ):
        flipped = np.bitwise_count(base ^ other).mean()
        assert abs(flipped - 32) < 4 * 4 / np.sqrt(5000)


def test_bits_are_fair_and_independent():
    m, n = 40_000, 200
    signs = 2.0 * chance.bits(chance.keys(11, 1, np.arange(m)), n) - 1
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(m)
    correlations = (signs.T @ signs / m)[np.triu_indices(n, 1)]
    # 19,900 correlations of standard deviation 1/sqrt(m): their spread is right and none is far
    # out.
    assert abs(correlations.std() * np.sqrt(m) - 1) < 0.03
    assert np.abs(correlations).max() < 6 / np.sqrt(m)
    # Consecutive indices are independent too.
    assert np.abs((signs[1:] * signs[:-1]).mean(axis=0)).max() < 5 / np.sqrt(m)


def test_uniform_is_uniform():
    from scipy.stats import kstest

    sample = chance.uniform(chance.keys(5, 2, np.arange(200)), 500).ravel()
    assert sample.min() >= 0
    assert sample.max() < 1
    assert kstest(sample, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "0", None, True])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(db.InvalidInput, match="seed"):
        db.value(db.games.Table([0, 1]), seed=seed)
