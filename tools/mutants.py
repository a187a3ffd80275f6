"""Change the parts that must not be wrong, one small change at a time, and see whether a test fails.

    python tools/mutants.py                         a sample of each part, drawn from a seed
    python tools/mutants.py --module distances --all

A mutant is the source with one change: another comparison, another operator, a
number one higher or lower, a statement left out. It lies in a copy of the source
tree, never in the tree itself. The tests of its part run on it in a process of
their own; a mutant that no test fails on has survived. Annotations, decorators and
texts are left alone. What no test can tell from the original is named, with the
reason, in equivalent_mutants.toml beside this file.
"""

import argparse
import ast
import gc
import importlib
import multiprocessing
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
LEAST = 0.9  # the share of mutants that must be found in each part
PATIENCE = 20.0  # seconds that a mutant may take, beyond five times the original's
LONGEST = 600  # seconds of computing after which a mutant ends even where nobody waits for it any more
MEMORY = 8 << 30  # bytes that a mutant may ask for
PARTS = {  # and the tests that a mutant of each must pass, with the doctests of its own
    "method.distances": (
        "method/test_distances.py",
        "selectors/test_set_distances.py::test_costs_stand_on_the_grid_and_only_equal_rows_cost_nothing",
    ),
    "method.transport": ("method/test_transport.py",),
    "method.selection": (
        "method/test_selection.py",
        "selectors/test_selector.py::test_a_draft_that_lacks_a_section_has_the_worst_distance_there",
    ),
    "method.nearest": ("method/test_nearest.py", "method/test_scoring.py"),
    "method.bank_file": ("method/test_files_of_arrays.py",),
    "_internal.record_file": ("generation/test_generation_journal.py",),
    "generation.journal": ("generation/test_generation_journal.py",),
    "evaluation.statistics": ("evaluation/test_statistics.py",),
    "evaluation.compare": ("evaluation/test_evaluation.py",),
}
HEAVY = (  # imported once
    "numpy", "scipy.optimize", "scipy.stats", "ot", "pytest", "hypothesis.extra.numpy", "sqlite3",
    "sentencex", "sacrebleu", "doctest", "unittest", "asyncio", "threadpoolctl",
)  # fmt: skip

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
PAIRED = ("min max", "minimum maximum", "argmin argmax", "any all", "zeros ones", "floor ceil")
NAMES = {one: other for pair in PAIRED for one, other in (pair.split(), pair.split()[::-1])}
LEFT_ALONE = {"annotation", "returns", "decorator_list"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one module."""

    part: str
    number: int  # of the source line
    line: str  # as it was, without its indent
    changed: str  # as it is now
    source: str  # of the whole module

    def same(self, entry: dict[str, str]) -> bool:
        """Whether an entry of the list of equivalent mutants means this one."""
        return (self.part, self.line, self.changed) == (entry["part"], entry["line"], entry["changed"])


def mutants(part: str) -> list[Mutant]:
    """Return every change that the rules below make to a part."""
    source = source_path(ROOT / "src", part).read_text()
    return [
        _mutant(part, source, place, text)
        for node in _code(ast.parse(source))
        for place, text in _changes(node)
    ]


def source_path(tree: Path, part: str) -> Path:
    """Return where a part's module lies in a tree of sources."""
    return tree.joinpath("tabon", *part.split(".")).with_suffix(".py")


def _mutant(part: str, source: str, place: ast.AST, text: str) -> Mutant:
    """Write a text in the place of a node."""
    lines = source.encode().splitlines(keepends=True)  # the parser counts bytes
    first, last = place.lineno - 1, place.end_lineno - 1
    changed = lines[first][: place.col_offset] + text.encode() + lines[last][place.end_col_offset :]
    whole = b"".join([*lines[:first], changed, *lines[last + 1 :]])
    before, after = (line.decode().strip() for line in (lines[first], changed))
    return Mutant(part, first + 1, before, after, whole.decode())


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that do something, outermost first; docstrings and texts do nothing."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in LEFT_ALONE:
            for child in value if isinstance(value, list) else [value]:
                match child:
                    case ast.JoinedStr() | ast.Expr(ast.Constant()):
                        pass
                    case ast.AST():
                        yield from _code(child)


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:  # noqa: C901, PLR0912  # a list of rules
    """Yield (place, what stands there instead) for each change at one node."""
    match node:
        case ast.Compare(left, [operator], [right]):
            yield node, ast.unparse(ast.Compare(left, [COMPARISONS[type(operator)]()], [right]))
        case ast.Compare(left, [first, *others], rights):
            yield node, ast.unparse(ast.Compare(left, [COMPARISONS[type(first)](), *others], rights))
            yield (
                node,
                ast.unparse(ast.Compare(left, [first, *(COMPARISONS[type(o)]() for o in others)], rights)),
            )
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            yield node, f"({ast.unparse(ast.BinOp(left, OPERATORS[type(operator)](), right))})"
        case ast.AugAssign(target, operator, value):
            if type(operator) in OPERATORS:
                yield node, ast.unparse(ast.AugAssign(target, OPERATORS[type(operator)](), value))
            yield node, "pass"
        case ast.BoolOp(operator, values):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield node, f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.UnaryOp(_, operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(bool(value)):
            yield node, str(not value)
        case ast.Constant(int(value)) | ast.Constant(float(value)):
            yield from ((node, repr(value + step)) for step in (1, -1))
        case ast.Name(name) | ast.Attribute(_, name) if name in NAMES:
            yield node, ast.unparse(node).removesuffix(name) + NAMES[name]
        case ast.Slice(lower, upper, step):
            if lower:
                yield node, ast.unparse(ast.Slice(None, upper, step))
            if upper:
                yield node, ast.unparse(ast.Slice(lower, None, step))
        case ast.If(test) | ast.IfExp(test) | ast.While(test) if not isinstance(
            test, ast.Compare | ast.UnaryOp
        ):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.Return(value) if value and not (isinstance(value, ast.Constant) and value.value is None):
            yield node, "return None"
        case ast.Expr() | ast.Raise() | ast.Return() | ast.Break() | ast.Continue():
            yield node, "pass"
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield node, "pass"


def sample(part: str, count: int | None, seed: int) -> list[Mutant]:
    """Draw some of a part's mutants, in the order of their lines; all where no number is given."""
    every = mutants(part)
    if count is None or count >= len(every):
        return every
    chosen = random.Random(f"{seed} {part}").sample(range(len(every)), count)  # noqa: S311
    return [every[index] for index in sorted(chosen)]


def equivalents() -> list[dict[str, str]]:
    """Return the mutants that no test can tell from the original, with the reasons."""
    return tomllib.loads(EQUIVALENT.read_text())["mutant"]


def _tests(tree: Path, part: str) -> None:
    """Run a part's tests on a tree of sources; the process ends with pytest's status."""
    import pytest
    from hypothesis import Phase, settings

    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
    for stream in (1, 2):
        os.dup2(os.open(tree.parent / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(tree)
    sys.path.insert(0, str(tree))
    phases = (Phase.explicit, Phase.generate)  # a failure is enough, it need not be small
    settings.register_profile("mutants", deadline=None, derandomize=True, database=None, phases=phases)
    options = "-x -q -p no:cacheprovider --disable-plugin-autoload -p _hypothesis_pytestplugin"
    options += " --hypothesis-profile=mutants -W ignore::pytest.PytestAssertRewriteWarning"
    files = [*(str(ROOT / "tests" / file) for file in PARTS[part]), str(source_path(tree, part))]
    os._exit(pytest.main([*options.split(), *files]))


def _outcome(tree: Path, part: str, limit: float | None) -> str:
    """Run a part's tests in a process of their own: passed, failed, or timeout."""
    process = multiprocessing.get_context("fork").Process(target=_tests, args=(tree, part))
    process.start()
    handle = os.pidfd_open(process.pid)
    ended, _, _ = select.select([handle], [], [], limit)
    os.close(handle)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # it, and what it started; its number is its own until joined
    process.join()
    return "timeout" if not ended else "failed" if process.exitcode else "passed"


def _try(mutant: Mutant, warm: Path, limit: float) -> str:
    """Say what becomes of a mutant: killed, timeout or survived."""
    with tempfile.TemporaryDirectory(dir=warm.parent) as folder:
        tree = Path(shutil.copytree(warm, Path(folder, "src"), copy_function=os.link))
        path = source_path(tree, mutant.part)
        path.unlink()
        path.write_text(mutant.source)
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        found = _outcome(tree, mutant.part, limit)
    return {"failed": "killed", "passed": "survived"}.get(found, found)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of the mutants of one part."""

    part: str
    found: Sequence[tuple[Mutant, str, bool]]  # killed, timeout or survived; whether named equivalent

    def count(self, outcome: str, *, named: bool = False) -> int:
        """Count an outcome among the mutants that are named equivalent, or among the others."""
        return sum((outcome, named) == found[1:] for found in self.found)

    def share(self) -> float:
        """Return the share that was killed of the mutants that can be killed."""
        survived = self.count("survived")
        killed = len(self.found) - survived - self.count("survived", named=True)
        return killed / max(killed + survived, 1)

    def lines(self) -> Iterator[str]:
        """Yield the row of the table, and each mutant that calls for work."""
        counts = (self.count("killed"), self.count("timeout"), self.count("survived", named=True))
        yield "| " + " | ".join(map(str, (self.part, len(self.found), *counts, f"{self.share():.0%}"))) + " |"
        for mutant, outcome, named in self.found:
            if (outcome == "survived") != named:
                wrong = "is named equivalent, yet a test fails on it" if named else "survived"
                yield f"{mutant.part}:{mutant.number} {wrong}\n  - {mutant.line}\n  + {mutant.changed}"


def tried(part: str, chosen: Sequence[Mutant], warm: Path, jobs: int) -> Result:
    """Run a part's tests on the source as it is, then on each mutant."""
    begun, named = time.monotonic(), equivalents()
    if _outcome(warm, part, None) != "passed":
        sys.exit(f"{(warm.parent / 'output').read_text()}\nthe tests of {part} fail on the source as it is")
    limit = PATIENCE + 5 * (time.monotonic() - begun)
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        outcomes = pool.map(partial(_try, warm=warm, limit=limit), chosen)
        return Result(
            part,
            [(one, found, any(map(one.same, named))) for one, found in zip(chosen, outcomes, strict=True)],
        )


def _options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--module", choices=PARTS, action="append", help="this part only; may be repeated")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each part [60]")
    parser.add_argument("--all", action="store_true", help="every mutant, not a sample")
    parser.add_argument("--seed", type=int, default=0, help="of the sample [0]")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at once [1]")
    return parser.parse_args()


def main() -> int:
    """Print a row for each part, with its survivors; fail where too many survived."""
    options = _options()
    for name in HEAVY:
        importlib.import_module(name)
    gc.freeze()  # the tests' processes need not look at any of that
    enough = True
    with tempfile.TemporaryDirectory() as folder:
        warm = Path(shutil.copytree(ROOT / "src", Path(folder, "src")))
        print("| part | mutants | killed | timed out | equivalent | score |\n|---|---|---|---|---|---|")
        for part in options.module or PARTS:
            chosen = sample(part, None if options.all else options.sample, options.seed)
            result = tried(part, chosen, warm, options.jobs)
            print(*result.lines(), sep="\n", flush=True)
            enough = enough and result.share() >= LEAST
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
