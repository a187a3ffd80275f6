"""From a data set on disk to ordered transitions."""
