"""The paper's grid from one TOML file: run what is missing, write every table."""

from tabon.reporting.experiment.plan import Experiment, read_experiment, simulated_experiment
from tabon.reporting.experiment.runner import Dependencies, reproduce

__all__ = ["Dependencies", "Experiment", "read_experiment", "reproduce", "simulated_experiment"]
