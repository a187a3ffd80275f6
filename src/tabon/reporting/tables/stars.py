"""The marks of a test beside a number."""

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
STARS_KEY = "Stars: p after Holm's correction below 0.05 (*), 0.01 (**), 0.001 (***)."


def stars_of(holm: float | None) -> str:
    """Return the stars of a p-value.

    >>> stars_of(0.004), stars_of(None)
    ('**', '')
    """
    return next((stars for bound, stars in STARS if holm is not None and holm < bound), "")
