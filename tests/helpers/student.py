"""The share of resamples that lies below a 95 % interval, written down a second time."""

from collections import Counter

from scipy.stats import norm, t


def tail(patients):
    """Return the share for studies of these patients."""
    studies = Counter(patients).values()
    alike = sum(studies) ** 2 / sum(number**2 for number in studies)
    return norm.cdf(-((alike / (alike - 1)) ** 0.5) * t.ppf(0.975, alike - 1))
