"""kill -9 at any step of any command that writes files: each file is the old one or the new one, whole."""

from shutil import rmtree

import pytest

import writing_commands
from budgets import budget, seeded
from kills import forks

MAIN = "tabon.cli:main"
QUICK = ("bank build", "bank index", "evaluate", "select", "simulate")  # `make test-all` kills all
OLD = b"what was there before"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What runs commands in forks."""
    with forks(tmp_path_factory.mktemp("forks")) as run:
        yield run


@pytest.fixture(scope="module")
def inputs(run, tmp_path_factory):
    """What the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    run("writing_commands:make_inputs", folder, warm=True)
    return folder


def reset(out, names, *, there):
    """Empty the folder, or put old files where the command will write."""
    rmtree(out, ignore_errors=True)
    out.mkdir()
    for name in names if there else ():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(OLD)


def check_killed(found, expected, *, there):
    """Every name has its old bytes or its new ones; beside them lie leftovers only."""
    for name, data in found.items():
        if name in expected:
            assert data == expected[name] or (there and data == OLD), f"{name} is half written"
        else:
            assert name.endswith(".part"), f"{name} was left behind"
            assert name.rpartition("/")[2].startswith("."), f"{name} was left behind"
    if there:
        assert expected.keys() <= found.keys()


@pytest.mark.parametrize("name", QUICK if budget(True, False) else sorted(writing_commands.COMMANDS))
def test_killed_commands_leave_old_files_or_new_ones(name, run, inputs, tmp_path):
    """After each kill the next run writes the same bytes as ever and clears what the dead one left."""
    rng, out = seeded(f"killed {name}"), tmp_path / "out"
    command = writing_commands.arguments(name, inputs, out)
    run(MAIN, command, warm=True)
    expected = writing_commands.written(out)
    reset(out, expected, there=True)
    steps = run(MAIN, command).steps
    assert writing_commands.written(out) == expected
    for _ in range(budget(2, 36)):
        there = rng.random() < 0.7
        reset(out, expected, there=there)
        step = rng.randint(1, steps)
        assert run(MAIN, command, die_at=step).killed, f"step {step} was not reached"
        check_killed(writing_commands.written(out), expected, there=there)
        again = run(MAIN, command)
        assert (again.killed, again.code) == (False, 0), again.said
        assert writing_commands.written(out) == expected, f"after a kill at step {step}"
