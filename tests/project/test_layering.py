"""Imports point one way, only the command line speaks, and functions stay short."""

import ast
from pathlib import Path
from statistics import median

import pytest

import tabon

ROOT = Path(tabon.__file__).parent
LAYERS = [  # from low to high; a folder imports only from lower layers
    {"_internal", "errors"},
    {"text"},
    {"encoders", "metrics"},
    {"method"},
    {"search", "selectors"},
    {"explanation", "data", "generation", "evaluation", "study"},
    {"reporting"},
    {"service", "integrations", "cli"},
]
SIDEWAYS = {  # inside a layer
    ("_internal", "errors"),
    ("selectors", "search"),
    ("study", "evaluation"),
    ("cli", "service"),
    ("cli", "integrations"),
}
MAY_IMPORT = {  # side rules: these folders stay apart from the method
    "generation": {"_internal", "errors", "text"},
    "data": {"_internal", "errors", "text"},
}
APART = {"data/simulate": ("tabon.errors", "tabon.text.reports", "tabon.data.simulate")}
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}
INTERFACES = {"cli"}
PROGRAMS = {"encoders/token_process.py"}  # start in a process of their own and speak through its pipes
VAGUE = {"utils", "util", "helpers", "common", "base", "misc"}
LOADERS = {"from_pretrained", "from_config", "SentenceTransformer", "CrossEncoder", "pipeline"}
LONGEST_FUNCTION, MEDIAN_FUNCTION, LONGEST_FILE = 60, 12, 400


def part_of(name):
    """Return the folder of a file: `cli/bank.py` is part of `cli`."""
    return name.partition("/")[0].removesuffix(".py")


FILES = sorted(ROOT.rglob("*.py"))
TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
BELOW_THE_INTERFACES = [
    name for name in TREES if name.partition("/")[0] not in INTERFACES and name not in PROGRAMS
]


def imported(tree):
    """Yield the dotted names that a file imports, wherever in it; `from a import b` as a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_parts(tree):
    """Yield the parts of tabon that a file imports; "" stands for the package root."""
    for name in imported(tree):
        package, _, rest = name.partition(".")
        if package == "tabon":
            part = rest.partition(".")[0]
            yield part if part in HEIGHT else ""


def dotted(node):
    """Write an attribute chain as it stands in the code; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def mentions(tree):
    """Yield every name and attribute chain of a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            yield dotted(node)


def calls(tree):
    """Yield the names that a file calls."""
    return (dotted(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))


def functions(tree):
    """Yield the functions and methods of a file, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(function):
    """Count the lines from `def` to the end."""
    return function.end_lineno - function.lineno + 1


def back_edge(importer, imported_part):
    """Say why a folder may not import another; None where it may."""
    if importer == imported_part:
        return None
    if imported_part not in MAY_IMPORT.get(importer, HEIGHT):
        return f"{importer} stays apart from {imported_part}"
    low, high = HEIGHT[imported_part], HEIGHT[importer]
    if low < high or (importer, imported_part) in SIDEWAYS:
        return None
    return f"{importer} (layer {high}) imports {imported_part} (layer {low})"


def test_there_are_eight_layers_of_folders():
    """The root holds two modules and the folders; a new folder is put into the order on purpose."""
    assert len(LAYERS) == 8
    parts = {part_of(name) for name in TREES} - {"__init__"}
    assert parts == set(HEIGHT)
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "errors.py"}


@pytest.mark.parametrize("name", [name for name in TREES if name != "__init__.py"])
def test_imports_point_one_way(name):
    """A module imports only what is lower, or of its own folder."""
    for other in own_parts(TREES[name]):
        assert other, f"{name} imports the package root"
        assert back_edge(part_of(name), other) is None, name


def test_a_planted_back_edge_is_found():
    """An import that points up, sideways where none is allowed, or past a side rule is named."""
    planted = ast.parse("def late():\n    from tabon.service.app import app\n")
    assert [back_edge("method", other) for other in own_parts(planted)] == [
        "method (layer 3) imports service (layer 7)"
    ]
    assert back_edge("search", "selectors") == "search (layer 4) imports selectors (layer 4)"
    assert back_edge("generation", "method") == "generation stays apart from method"
    assert back_edge("service", "method") is None


@pytest.mark.parametrize("folder", APART)
def test_some_folders_stay_apart(folder):
    """The simulator knows nothing of the method that it tests."""
    for name, tree in TREES.items():
        if name.startswith(folder):
            own = [module for module in imported(tree) if module.startswith("tabon")]
            assert all(module.startswith(APART[folder]) for module in own), name


def test_folders_of_one_layer_do_not_import_each_other_in_a_circle():
    """The allowed sideways imports point one way too."""
    assert not {(b, a) for a, b in SIDEWAYS} & SIDEWAYS


def test_names_in_tables_point_one_way_too():
    """Dotted names that are looked up at run time lead down or to the same part."""
    seen = 0
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and text.startswith("tabon.") and ":" in text and " " not in text:
                seen += 1
                other = text.partition(":")[0].split(".")[1]
                assert HEIGHT[other] <= HEIGHT[part_of(name)], f"{name} looks up {text}"
    assert seen >= 4


def test_the_package_root_imports_no_interface():
    """The public names are neither the command line's nor the service's."""
    assert not {"cli", "service", "integrations", ""} & set(own_parts(TREES["__init__.py"]))


@pytest.mark.parametrize("name", BELOW_THE_INTERFACES)
def test_nothing_below_the_interfaces_speaks_or_reads_the_environment(name):
    """No print, no standard stream, no environment, no logging set up, no warning filter, no exit."""
    forbidden = {
        "os.environ",
        "os.environb",
        "os.getenv",
        "os.putenv",
        "os.unsetenv",
        "sys.stdin",
        "sys.stdout",
        "sys.stderr",
        "sys.exit",
        "sys.argv",
        "warnings.filterwarnings",
        "warnings.simplefilter",
        "warnings.catch_warnings",
        "logging.basicConfig",
        "logging.disable",
    }
    assert not forbidden & {*mentions(TREES[name]), *imported(TREES[name])}
    spoken = {"print", "input", "exit", "quit", "breakpoint"}
    assert not spoken & set(calls(TREES[name]))
    assert not {"click", "logging.config", "logging.handlers"} & set(imported(TREES[name]))
    handlers = {"addHandler", "setLevel", "addFilter"}
    assert not handlers & {call.rpartition(".")[2] for call in calls(TREES[name])}


@pytest.mark.parametrize("name", TREES)
def test_no_file_is_called_after_nothing(name):
    """Nothing is called utils, helpers, common, base or misc."""
    assert not VAGUE & {part.strip("_") for part in name.removesuffix(".py").split("/")}


@pytest.mark.parametrize("name", TREES)
def test_nothing_that_runs_data_as_code(name):
    """No pickle, no eval or exec, no shell, no remote code of models."""
    tree = TREES[name]
    modules = {part for dotted_name in imported(tree) for part in dotted_name.split(".")}
    assert not {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"} & modules
    called = set(calls(tree))
    assert not {"eval", "exec", "compile", "__import__", "os.system", "np.load"} & called
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in {"trust_remote_code", "allow_pickle", "shell"}:
            assert isinstance(node.value, ast.Constant)
            assert node.value.value is False
        assert not (isinstance(node, ast.Constant) and node.value in ("trust_remote_code", "allow_pickle"))
        if isinstance(node, ast.Call) and dotted(node.func).endswith("torch.load"):
            [safe] = [keyword.value for keyword in node.keywords if keyword.arg == "weights_only"]
            assert isinstance(safe, ast.Constant)
            assert safe.value is True


@pytest.mark.parametrize("name", sorted(TREES))
def test_no_model_is_loaded_with_code_of_its_own(name):
    """Every call that loads a model says trust_remote_code=False: left out, transformers asks on stdin."""
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Call) and (called := dotted(node.func).rpartition(".")[2]) in LOADERS:
            said = {word.arg: ast.unparse(word.value) for word in node.keywords}
            assert said.get("trust_remote_code") == "False", f"{name}:{node.lineno} {called}"


def test_functions_are_short():
    """No function is longer than a screen, and the median one is a dozen lines at most."""
    lengths = {
        f"{name}:{function.name}": length(function)
        for name, tree in TREES.items()
        for function in functions(tree)
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}
    assert median(lengths.values()) <= MEDIAN_FUNCTION


def test_files_are_short():
    """No file is over 400 lines."""
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: count for name, count in lines.items() if count > LONGEST_FILE} == {}
