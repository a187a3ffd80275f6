"""The data sets that tabon can read, by name."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from tabon.cohort.visits import DataSet
from tabon.errors import UnknownNameError

DATASETS: Mapping[str, str] = MappingProxyType(
    {
        "rexgradient": "tabon.cohort.rexgradient",
        "mimic-cxr": "tabon.cohort.mimic_cxr",
        "chexpert-plus": "tabon.cohort.chexpert_plus",
        "padchest": "tabon.cohort.padchest",
        "padchest-gr": "tabon.cohort.padchest_gr",
        "covid-chestxray": "tabon.cohort.covid_chestxray",
    }
)
GENERIC = "generic"  # any table, with a column map


def get_dataset(name: str) -> DataSet:
    """Return the data set of that name."""
    if name not in DATASETS:
        raise UnknownNameError("data set", name, [*DATASETS, GENERIC])
    dataset: DataSet = import_module(DATASETS[name]).DATASET
    return dataset
