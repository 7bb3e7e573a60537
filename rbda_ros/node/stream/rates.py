"""Rates of measured numbers, where no one measures them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.intp]

NEVER = -(2**62)
"""A time before any other [ns]."""


class FilteredRates:
    """Differences over the stamps, through a first-order low-pass.

    ``rate += (1 - exp(-2 pi cutoff dt)) (difference / dt - rate)``: for stamps that come as they
    like, this is the same filter at every dt.

    Attributes:
        rates: (size,) of each number; NaN until it was measured twice without a long gap.
    """

    def __init__(self, size: int) -> None:
        self.rates: Vector = np.full(size, np.nan)
        self._values: Vector = np.zeros(size)
        self._times = np.full(size, NEVER, np.int64)

    @property
    def arrays(self) -> tuple[Vector, Vector, NDArray[np.int64]]:
        """Rates, the last values and their times [ns], for whoever updates them from C."""
        return self.rates, self._values, self._times

    def forget(self) -> None:
        """Begin anew."""
        self.rates[:] = np.nan
        self._times[:] = NEVER

    def update(
        self, where: Indices | slice, values: Vector, time: int, cutoff: float, longest: float
    ) -> None:
        """Take new values of some of the numbers.

        Args:
            where: which.
            values: of these.
            time: that they are from [ns]; values of the same time as the last are ignored.
            cutoff: corner frequency of the filter [Hz].
            longest: gap after which there is no rate until the next time [s]; nor is there one
                if time went back.
        """
        dt = (time - self._times[where]) * 1e-9
        other = dt != 0.0
        if not other.all():
            indices = np.arange(len(self.rates))[where]
            if other.any():
                self.update(indices[other], values[other], time, cutoff, longest)
            return
        before = self.rates[where]
        share = -np.expm1(-2.0 * math.pi * cutoff * dt)
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite makes no rate
            raw = (values - self._values[where]) / dt
            filtered = np.where(np.isnan(before), raw, before + share * (raw - before))
        unknown = (dt < 0.0) | (dt > longest) | (self._times[where] == NEVER)
        self.rates[where] = np.where(unknown, np.nan, filtered)
        self._values[where] = values
        self._times[where] = time
