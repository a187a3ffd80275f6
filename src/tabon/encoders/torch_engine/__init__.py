"""What only torch can run: GPUs, reduced precision, and models that are not plain BERT or MPNet."""
