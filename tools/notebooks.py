"""The notebooks of examples/notebooks: run by a kernel, as a reader's Jupyter does, and written as a page."""

from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jupytext
from nbclient import NotebookClient
from traitlets.config import Config

PATIENCE = 600  # seconds until a cell is given up
FENCE = "````"  # longer than what a text may hold


def executed(path: Path) -> Any:  # noqa: ANN401  # a notebook, which nbformat has no type for
    """Run a notebook in an empty folder, and return it with what its cells showed."""
    notebook = jupytext.read(path)
    with TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        socket = Config(
            {"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}}
        )  # no port for others to ask
        NotebookClient(notebook, timeout=PATIENCE, resources=place, config=socket).execute()
    return notebook


def markdown(notebook: Any) -> str:  # noqa: ANN401
    """Write a notebook that was run as a page."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts += [fenced(".python", cell.source), *map(shown, cell.outputs)]
    return "\n\n".join(parts) + "\n"


def shown(output: Any) -> str:  # noqa: ANN401
    """Write one output in the richest form that a page can show."""
    data = {"text/plain": output.text} if output.output_type == "stream" else output.data
    if "image/svg+xml" in data:
        coded = b64encode(data["image/svg+xml"].encode()).decode()
        return f'<img class="output" alt="{data["text/plain"]}" src="data:image/svg+xml;base64,{coded}">'
    if "text/html" in data:
        return f'<div class="output">{data["text/html"]}</div>'
    return fenced(".text .output .no-copy", data["text/plain"].rstrip("\n"))


def fenced(classes: str, text: str) -> str:
    """Put a text between fences."""
    return f"{FENCE} {{ {classes} }}\n{text}\n{FENCE}"
