"""Financial functions (time value of money), on NumPy's arrays: NumPy had them until 1.19, and MXNet's ``mx.np`` kept them.

In all of them `rate` is the interest of one period, `nper` the number of periods, and `when` is ``'end'`` (0) for payments at the
end of a period or ``'begin'`` (1) for payments at its start. Amounts received are positive, amounts paid negative.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..suggestions import shortened

__all__ = ["mirr", "npv", "pmt", "ppmt", "pv", "rate"]

_WHEN = {"end": 0, "e": 0, "finish": 0, 0: 0, "begin": 1, "b": 1, "beginning": 1, "start": 1, 1: 1}


def _paid_at(when):
    if isinstance(when, (str, int)):
        if when not in _WHEN:
            raise ValueError(f"when must be 'end' (0) or 'begin' (1), received {shortened(when)}")
        return _WHEN[when]
    return np.array([_paid_at(w if isinstance(w, str) else int(w)) for w in when])


def _growth(rate, nper, when):
    """Return the future values of 1, and of payments of 1 in each period."""
    rate, nper = np.asarray(rate, np.float64), np.asarray(nper, np.float64)
    growth = (1 + rate) ** nper
    safe = np.where(rate == 0, 1, rate)
    return growth, np.where(rate == 0, nper, (1 + rate * when) * (growth - 1) / safe)


def pv(rate: Any, nper: Any, pmt: Any, fv: Any = 0, when: str | int = "end") -> Any:
    """Return the present value of `nper` payments `pmt` and a value `fv` at the end.

    Example
    -------
    >>> import mxnet as mx
    >>> round(float(mx.np.pv(0.05 / 12, 10 * 12, -100, 15692.93)), 2)
    -100.0
    """
    growth, payments = _growth(rate, nper, _paid_at(when))
    return -(np.asarray(fv) + np.asarray(pmt) * payments) / growth


def pmt(rate: Any, nper: Any, pv: Any, fv: Any = 0, when: str | int = "end") -> Any:
    """Return the payment in each of `nper` periods that turns `pv` into `fv`.

    Example
    -------
    >>> import mxnet as mx
    >>> round(float(mx.np.pmt(0.075 / 12, 12 * 15, 200000)), 2)
    -1854.02
    """
    growth, payments = _growth(rate, nper, _paid_at(when))
    return -(np.asarray(fv) + np.asarray(pv) * growth) / payments


def ppmt(rate: Any, per: Any, nper: Any, pv: Any, fv: Any = 0, when: str | int = "end") -> Any:
    """Return the part of payment number `per`, counted from 1, that is no interest; NaN for `per` below 1."""
    when = _paid_at(when)
    total = pmt(rate, nper, pv, fv, when)
    growth, payments = _growth(rate, np.asarray(per) - 1, when)
    interest = -np.asarray(rate) * (np.asarray(pv) * growth + total * payments)
    interest = np.where(np.equal(when, 1), np.where(np.equal(per, 1), 0.0, interest / (1 + np.asarray(rate))), interest)
    return np.where(np.less(per, 1), np.nan, total - interest)[()]


def rate(nper: Any, pmt: Any, pv: Any, fv: Any, when: str | int = "end", guess: float | None = 0.1, tol: float | None = 1e-6,
         maxiter: int = 100) -> Any:
    """Return the interest at which `nper` payments `pmt` turn `pv` into `fv`: found by Newton's steps from `guess`; NaN without convergence.

    Example
    -------
    >>> import mxnet as mx
    >>> round(float(mx.np.rate(10, 0, -3500, 10000)), 4)
    0.1107
    """
    when = _paid_at(when)
    nper, pmt, pv, fv = (np.asarray(x, np.float64) for x in (nper, pmt, pv, fv))
    guess = 0.1 if guess is None else guess
    tol = 1e-6 if tol is None else tol
    rates = np.asarray(guess, np.float64) + np.zeros(np.broadcast_shapes(nper.shape, pmt.shape, pv.shape, fv.shape))
    for _ in range(maxiter):
        growth = (1 + rates) ** nper
        slope = nper * growth / (1 + rates)
        value = fv + pv * growth + pmt * (1 + rates * when) * (growth - 1) / rates
        change = pv * slope + pmt * ((1 + rates * when) * slope / rates - (growth - 1) / rates ** 2)
        step = value / change
        rates = rates - step
        if np.all(np.abs(step) < tol):
            return rates
    return np.where(np.abs(step) < tol, rates, np.nan)


def npv(rate: Any, values: Any) -> Any:
    """Return the net present value of a series of payments, the first of them now.

    Example
    -------
    >>> import mxnet as mx
    >>> round(float(mx.np.npv(0.08, [-40000, 5000, 8000, 12000, 30000])), 2)
    3065.22
    """
    values = np.asarray(values, np.float64)
    return np.sum(values / (1 + np.asarray(rate)) ** np.arange(len(values)), axis=0)


def mirr(values: Any, finance_rate: Any, reinvest_rate: Any) -> Any:
    """Return the modified internal rate of return of a series of payments; NaN unless some are made and some are received.

    Parameters
    ----------
    values : array-like
    finance_rate, reinvest_rate : float
        The interest on amounts paid, and on amounts received.
    """
    values = np.asarray(values, np.float64)
    paid, received = values < 0, values > 0
    if not paid.any() or not received.any():
        return np.nan
    gain = abs(npv(reinvest_rate, values * received)) / abs(npv(finance_rate, values * paid))
    return gain ** (1 / (values.size - 1)) * (1 + reinvest_rate) - 1
