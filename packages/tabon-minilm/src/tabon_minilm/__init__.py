"""The files of sentence-transformers/all-MiniLM-L6-v2, as tabon has checked them: data, no code."""

from pathlib import Path

MODEL_DIR = Path(__file__).parent / "model"
