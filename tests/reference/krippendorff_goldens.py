"""Makes tests/golden/krippendorff.json: what the package krippendorff says of drawn judgements.

    REFERENCE/bin/python tests/reference/krippendorff_goldens.py > tests/golden/krippendorff.json

REFERENCE is an environment with krippendorff and numpy; tabon is not needed. Of each unit the file keeps what
each reader says, a category from 0, or null.
"""

import json
import sys
from importlib.metadata import version

import numpy as np

METRICS = ("nominal", "ordinal", "interval")


def judgements(rng, readers, units, categories, missing):
    """Return (units, readers) of categories; readers follow a common view with noise, some are missing."""
    view = rng.integers(categories, size=units)
    said = np.clip(view[:, None] + rng.integers(-1, 2, size=(units, readers)), 0, categories - 1).astype(
        float
    )
    said[rng.random((units, readers)) < missing] = np.nan
    return said


def main():
    """Write the cases with alpha by each metric."""
    import krippendorff

    rng = np.random.default_rng(20261119)
    cases = []
    for readers, units, categories, missing in (
        *((2, 30, 3, 0.0), (3, 25, 5, 0.2), (5, 40, 5, 0.4), (4, 12, 2, 0.3), (2, 60, 5, 0.1)),
        *((6, 20, 3, 0.5), (3, 100, 4, 0.05), (2, 8, 5, 0.0)),
    ):
        said = judgements(rng, readers, units, categories, missing)
        alphas = {
            metric: krippendorff.alpha(
                reliability_data=said.T, value_domain=np.arange(categories), level_of_measurement=metric
            )
            for metric in METRICS
        }
        rows = [[None if np.isnan(one) else int(one) for one in row] for row in said]
        cases.append({"categories": categories, "said": rows, "alpha": alphas})
    json.dump({"krippendorff": version("krippendorff"), "cases": cases}, sys.stdout, indent=None)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
