"""A low-pass without delay, that ends where episodes do."""

import numpy as np
import pytest

from rbda_ros import InputError
from rbda_ros.recordings.labeller import Labelled, Sample, Smoother

RATE = 1000.0
NONE = np.zeros(0)


def labelled(k, value, measured=True):
    effort = np.array([value])
    sample = Sample(
        round(k * 1e9 / RATE), NONE, NONE, effort if measured else None, effort, None, (), NONE
    )
    return Labelled(k, b"", [], sample)


def smoothed(values, cutoff):
    smoother = Smoother(cutoff)
    found = [out for k, value in enumerate(values) for out in smoother.add(labelled(k, value))]
    found += smoother.end()
    assert [out.time for out in found] == list(range(len(values)))
    return np.array([out.sample.feedforward[0] for out in found])


@pytest.mark.parametrize(("frequency", "share"), [(1.0, 0.99), (10.0, 0.707), (40.0, 0.0)])
def test_half_of_the_power_is_left_at_the_cutoff_and_nothing_is_late(frequency, share):
    times = np.arange(2000) / RATE
    wave = np.sin(2 * np.pi * frequency * times)
    inner = slice(200, -200)
    np.testing.assert_allclose(smoothed(wave, 10.0)[inner], share * wave[inner], atol=0.02)


def test_a_constant_stays_to_both_ends_of_an_episode():
    np.testing.assert_allclose(smoothed(np.full(100, 3.0), 5.0), 3.0, atol=1e-12)


def test_episodes_do_not_leak_into_each_other():
    smoother = Smoother(5.0)
    list(smoother.add(labelled(0, 100.0)))
    list(smoother.end())
    list(smoother.add(labelled(1, 1.0)))
    (out,) = smoother.end()
    assert out.sample.feedforward[0] == 1.0


def test_what_was_not_measured_is_not_made_up():
    smoother = Smoother(100.0)
    given = [labelled(k, 1.0 * k, measured=k != 2) for k in range(5)]
    found = [out for one in given for out in smoother.add(one)] + list(smoother.end())
    assert found[2].sample.measured is None
    assert 1.0 <= found[1].sample.measured[0] <= 3.0


def test_what_is_remembered_is_bounded():
    smoother = Smoother(10.0)
    for k in range(3000):
        list(smoother.add(labelled(k, 0.0)))
    assert len(smoother._known) <= 2 * 36 + 2
    for cutoff in (0.01, float("nan"), float("inf")):
        with pytest.raises(InputError, match=r"0\.1 Hz or more"):
            Smoother(cutoff)
    list(Smoother(1e15).add(labelled(0, 1.0)))
