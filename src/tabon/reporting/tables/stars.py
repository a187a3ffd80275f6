"""The marks of a test beside a number."""

from tabon.reporting.tables.places import DASH

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
STARS_KEY = "Stars: p after Holm's correction below 0.05 (*), 0.01 (**), 0.001 (***)."


def stars_of(holm: float | None) -> str:
    """Return the stars of a p-value.

    >>> stars_of(0.004), stars_of(None)
    ('**', '')
    """
    return next((stars for bound, stars in STARS if holm is not None and holm < bound), "")


def p_value(p: float | None) -> str:
    """Write a p-value; what rounds to nothing is written as a bound.

    >>> p_value(0.0123), p_value(0.0001), p_value(None)
    ('0.012', '<0.001', '–')
    """
    if p is None:
        return DASH
    return "<0.001" if p < STARS[0][0] else f"{p:.3f}"
