"""What will be compared by which scores, with which seeds: hashed before anything is scored.

A plan is written once, and every results file says by which it was made, and in what it departs from the one
that was written before.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabon._internal.atomic_files import replacing
from tabon._internal.typed_values import read_typed

if TYPE_CHECKING:
    from tabon.evaluation.evaluate import EvaluationSettings, RunInput
    from tabon.evaluation.outside_scores import OutsideScore
    from tabon.metrics import Metric

FORMAT = "tabon-analysis-plan/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisPlan:
    """All that decides what an evaluation says, beside what is found."""

    queries: Mapping[str, str]  # run: sha256
    methods: Mapping[str, str]  # method: the signature of its selections
    metrics: Mapping[str, str]  # and scores from elsewhere: the signature
    headline: tuple[str, ...]  # the family for Holm
    settings: Mapping[str, Any]  # seeds, resamples, groups, margin

    @classmethod
    def of(
        cls,
        runs: Sequence["RunInput"],
        metrics: Sequence["Metric | OutsideScore"],
        headline: Sequence[str],
        settings: "EvaluationSettings",
    ) -> "AnalysisPlan":
        """Return the plan of an evaluation; nothing is measured for it."""
        return cls(
            queries={run.name: run.cases.sha256 for run in runs},
            methods={picks.method: picks.signature for run in runs for picks in run.picks},
            metrics={metric.name: metric.signature for metric in metrics},
            headline=tuple(headline),
            settings=json.loads(json.dumps(asdict(settings))),
        )

    def sha256(self) -> str:
        """Return the hash of all of it."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def departures(self, planned: "AnalysisPlan") -> tuple[str, ...]:
        """Name what differs from a plan that was written before: "methods", "settings.seed"."""
        here, there = ({**asdict(plan), **_dotted(plan.settings)} for plan in (self, planned))
        names = [name for name in dict.fromkeys([*there, *here]) if name != "settings"]
        return tuple(name for name in names if _as_json(here.get(name)) != _as_json(there.get(name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """What results say of their plan."""

    sha256: str  # of the plan that was written before anything was scored
    departures: tuple[str, ...] = ()  # in what the results were made otherwise


def keep_plan(path: Path, plan: AnalysisPlan) -> PlanRecord:
    """Write a plan where none is yet; say in what it departs from the one that is there."""
    if not path.exists():
        with replacing(path) as file:
            file.write(json.dumps({"format": FORMAT, **asdict(plan)}, indent=1).encode() + b"\n")
    planned = read_typed(
        AnalysisPlan, path, form=FORMAT, what="analysis plan", hint="name a new file to write one"
    )
    return PlanRecord(sha256=planned.sha256(), departures=plan.departures(planned))


def _dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings by their full names."""
    return {f"settings.{name}": value for name, value in settings.items()}


def _as_json(value: object) -> str:
    """Write a value as it is compared."""
    return json.dumps(value, sort_keys=True)
