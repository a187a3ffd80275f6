"""BERT and MPNet on a processor in float32: onnxruntime, or numpy where it is not installed; no torch."""
