"""The data sets that tabon can read, by name."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from tabon.data.cohort.visits import DataSet
from tabon.errors import UnknownNameError

DATASETS: Mapping[str, str] = MappingProxyType(
    {
        "rexgradient": "tabon.data.cohort.datasets.rexgradient",
        "mimic-cxr": "tabon.data.cohort.datasets.mimic_cxr",
        "chexpert-plus": "tabon.data.cohort.datasets.chexpert_plus",
        "padchest": "tabon.data.cohort.datasets.padchest",
        "padchest-gr": "tabon.data.cohort.datasets.padchest_gr",
        "covid-chestxray": "tabon.data.cohort.datasets.covid_chestxray",
    }
)
GENERIC = "generic"  # any table, with a column map


def get_dataset(name: str) -> DataSet:
    """Return the data set of that name."""
    if name not in DATASETS:
        raise UnknownNameError("data set", name, [*DATASETS, GENERIC])
    dataset: DataSet = import_module(DATASETS[name]).DATASET
    return dataset
