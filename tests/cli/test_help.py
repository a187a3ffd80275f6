"""Help: one meaning for an option's name, headings, whole summaries, an example that works, completion."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace

import click
import pytest

from commands import tabon
from draft_records import KEY, line
from tabon.cli import main
from tabon.cli.help import HEADINGS, MANY, long_name
from tabon.data.simulate import SimulationSettings, simulate_queries
from tabon.encoders import load as loading

PLACES = (click.Path, click.File)  # both read a place on disk
WORDS = (click.Choice, click.types.FuncParamType)  # both read a text
# Names whose help differs between commands, each with the one thing that it means in all of them.
ONE_MEANING = {
    "--bank": "the training transitions",
    "--cohort": "a cohort folder",
    "--columns": "which column of a table is which",
    "--distance": "a set distance",
    "--drafts": "a file of drafts",
    "--dry-run": "write nothing, say what would be done",
    "--id": "the id of a query",
    "--images": "the folder of images",
    "--limit": "how many of the first studies",
    "--model": "the model that writes drafts",
    "--out": "where to write",
    "--prompt": "how drafts are asked for",
    "--resamples": "how often is resampled",
    "--score": "the score that is looked at",
    "--search": "a search engine or its index",
    "--seed": "draws what is random",
    "--selections": "what `tabon select` printed",
    "--selector": "a selector",
    "--shares": "the shares of the three splits",
    "--store": "where sentence embeddings are kept",
    "--timeout": "seconds to wait",
    "--title": "stands over a page",
}
PARSED = {
    "collect",
    "controls",
    "demo",
    "doctor",
    "generate",
    "reproduce",
    "results",
    "serve",
    "simulate",
}  # models, a network, readers, much time


def walk(command, path="tabon"):
    """Yield every command that is no group, with its path."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from walk(command.get_command(click.Context(command), name), f"{path} {name}")
    else:
        yield path, command


COMMANDS = dict(walk(main))


def options(command):
    """Return the options of a command."""
    return [param for param in command.params if isinstance(param, click.Option)]


def kind(option):
    """Return what kind of value an option takes."""
    for kinds, word in ((PLACES, "place"), (WORDS, "text")):
        if isinstance(option.type, kinds):
            return word
    return "flag" if option.is_flag else option.type.name.removesuffix(" range")


def test_an_option_name_has_one_meaning():
    """One name has one kind of value in all commands, and one help, or one meaning that the table gives."""
    kinds, helps = {}, {}
    for command in COMMANDS.values():
        for option in options(command):
            for name in option.opts:
                kinds.setdefault(name, set()).add(kind(option))
                helps.setdefault(name, set()).add(option.help)
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}
    assert {name for name, found in helps.items() if len(found) > 1} == set(ONE_MEANING)
    assert [name for name, found in helps.items() if not all(found)] == []


def test_n_is_the_number_of_drafts():
    """`-n` and `--num-drafts` are one option wherever drafts are counted; no option is called candidates."""
    names = [tuple(option.opts) for command in COMMANDS.values() for option in options(command)]
    assert {opts for opts in names if "-n" in opts} == {("-n", "--num-drafts")}
    assert not {opts for opts in names if {"--candidates", "--samples"} & {*opts}}


def test_every_name_under_a_heading_is_an_option():
    """The headings name no option that is gone, and none twice."""
    known = {long_name(option) for command in COMMANDS.values() for option in options(command)}
    named = [name for names in HEADINGS.values() for name in names]
    assert set(named) <= known
    assert len(set(named)) == len(named)


@pytest.mark.parametrize("path", COMMANDS)
def test_help_has_headings_and_an_example(path):
    """Many options stand under headings, every one of them once; the example can be copied."""
    command = COMMANDS[path]
    text = tabon(*path.split()[1:], "--help").stdout
    found = options(command)
    shown = [heading for heading in HEADINGS if f"\n{heading}:\n" in text]
    assert (len(shown) >= 2) == (len(found) + 1 > MANY)
    assert f"\nExample:\n  {command.example}\n" in text
    listed = text.partition("\nOptions:\n")[2]
    for option in found:
        assert len(re.findall(rf"^  {', '.join(option.opts)}\b(?!-)", listed, flags=re.MULTILINE)) == 1


@pytest.mark.parametrize("words", [(), ("bank",), ("convert",), ("study",)])
@pytest.mark.parametrize("width", [50, 80, 200])
def test_no_summary_is_cut(words, width):
    """Lists of commands hold whole sentences on narrow terminals too."""
    text = click.testing.CliRunner().invoke(main, [*words, "--help"], terminal_width=width).stdout
    assert "..." not in text.replace("[ARGS]...", "")
    rows = " ".join(text.split())
    group = main if not words else main.get_command(None, words[0])
    for name in group.list_commands(None):
        assert f" {name} " in rows
        assert words == () or group.commands[name].get_short_help_str(limit=999) in rows


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "ENCODERS", {**loading.ENCODERS, "minilm": loading.ENCODERS["hashing"]})
    made = tabon("simulate", "--out", "cohort", "--patients", 60)
    assert made.exit_code == 0
    queries = list(simulate_queries(SimulationSettings(patients=60), "test"))
    queries[0] |= {"id": "s1", "patient": "Patient/p"}
    lines = "".join(json.dumps(query) + "\n" for query in queries)
    (tmp_path / "queries.jsonl").write_text(lines)
    (tmp_path / "transitions.jsonl").write_text((tmp_path / "cohort/train/transitions.jsonl").read_text())
    (tmp_path / "drafts.jsonl").write_text('"Findings: Clear."\n"Findings: Fluid."\n')
    (tmp_path / "answers.json").write_text("{}")
    prior = {"resourceType": "DiagnosticReport", "id": "r1", "status": "final", "code": {"text": "XR"}}
    prior |= {"subject": {"reference": "Patient/p"}, "conclusion": "FINDINGS: Clear."}
    (tmp_path / "prior.json").write_text(json.dumps(prior))
    rows = [f"p{n},2019-0{visit}-0{visit},Findings: Clear {n} {visit}." for n in range(9) for visit in (1, 2)]
    (tmp_path / "visits.csv").write_text("\n".join(["PatientID,StudyDate,ReportText", *rows]))
    (tmp_path / "drafts.csv").write_text("PatientID,StudyDate,Text\np1,2019-02-02,Findings: Fluid.\n")
    studies = (tmp_path / "cohort/test/transitions.jsonl").read_text().splitlines()
    keys = [replace(KEY, study=json.loads(study)["id"]) for study in studies]
    (tmp_path / "journal.jsonl").write_bytes(b"".join(map(line, keys)))
    return tmp_path


@pytest.mark.usefixtures("place")
def test_every_example_works():
    """Each example runs on files of the names that it uses, or is at least read without an error."""
    later = ["tabon select", "tabon convert draft", "tabon evaluate", "tabon table", "tabon card"]
    first = ["tabon bank build", "tabon import", "tabon study init"]
    last = ["tabon drafts"]  # it writes other queries
    others = [path for path in COMMANDS if path not in (*first, *later, *last)]
    for path in [*first, *later, *others, *last]:
        command, words = COMMANDS[path], shlex.split(COMMANDS[path].example)
        depth = len(path.split())
        assert words[:depth] == path.split()
        command.make_context(path, words[depth:]).close()
        if path.split()[-1] not in PARSED:
            done = tabon(*words[1:])
            assert done.exit_code == 0, (path, done.output)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_produced(shell):
    """What the guide says to put into a shell's start file prints a script that calls tabon."""
    done = complete(f"{shell}_source")
    assert "_TABON_COMPLETE=" in done.stdout
    assert "tabon" in done.stdout


def test_completion_knows_commands_and_options():
    """Commands are completed without one being imported; options and names of files by their command."""
    asked = complete("bash_complete", COMP_WORDS="tabon se", COMP_CWORD="1")
    assert asked.stdout.split() == ["plain,select", "plain,serve"]
    asked = complete("bash_complete", COMP_WORDS="tabon select --agg", COMP_CWORD="2")
    assert asked.stdout.split() == ["plain,--aggregate"]


def complete(instruction, **variables):
    """Run tabon as a shell does that completes."""
    program = [sys.executable, "-c", "from tabon.cli import main; main(prog_name='tabon')"]
    env = {**os.environ, "_TABON_COMPLETE": instruction, **variables}
    return subprocess.run(program, capture_output=True, text=True, check=False, env=env)
