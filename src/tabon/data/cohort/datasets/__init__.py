"""The data sets that tabon can read, by name."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from tabon.data.cohort.visits import DataSet
from tabon.errors import UnknownNameError

GENERIC = "generic"  # any table, with a column map
DATASETS: Mapping[str, str] = MappingProxyType(
    {
        "rexgradient": "tabon.data.cohort.datasets.rexgradient:DATASET",
        "mimic-cxr": "tabon.data.cohort.datasets.mimic_cxr:DATASET",
        "chexpert-plus": "tabon.data.cohort.datasets.image_tables:CHEXPERT_PLUS",
        "padchest": "tabon.data.cohort.datasets.image_tables:PADCHEST",
        "padchest-gr": "tabon.data.cohort.datasets.padchest_gr:DATASET",
        "covid-chestxray": "tabon.data.cohort.datasets.image_tables:COVID_CHESTXRAY",
    }
)


def get_dataset(name: str) -> DataSet:
    """Return the data set of that name."""
    if name not in DATASETS:
        raise UnknownNameError("data set", name, [*DATASETS, GENERIC])
    module, _, attribute = DATASETS[name].partition(":")
    dataset: DataSet = getattr(import_module(module), attribute)
    return dataset
