"""A card of results: what was compared, how, what came out, and what its author must add."""

from dataclasses import replace

from tabon.evaluation.results import Results
from tabon.reporting.cards.facts import Facts
from tabon.reporting.tables import render, statistics_table
from tabon.reporting.tables.places import score_name

HEADINGS = {  # of each fact of the results, and of what else is known
    "runs": "Studies and drafts",
    "data": "Data",
    "splits": "Splits",
    "models": "Models",
    "queried": "Queried",
    "parameters": "Parameters",
    "methods": "Selectors",
    "scores": "Scores",
    "missing": "Not measured",
    "statistics": "Statistics",
    "versions": "Versions",
}
PLANNED = "Which comparison was planned before anything was scored"
AUTHOR = (
    "What the study is for, and who would use its result",
    PLANNED,
    "Licences of the data and of the models, and whether both allow this use",
    "Limits: whom the patients represent, what the scores cannot see",
    "Contact",
)


def results_card(results: Results, facts: Facts) -> str:
    """Return the card as Markdown, with the first score of the headline for each section."""
    lines = [
        "# Results card",
        "",
        "Research use only; not a medical device. Made by tabon from stored results.",
    ]
    for name, heading in HEADINGS.items():
        if facts.get(name):
            lines += ["", f"## {heading}", "", *(f"- {sentence}" for sentence in facts[name])]
    for score in [score for score in results.headline if score in results.scores][:1]:
        for section in dict.fromkeys(cell.section for cell in results.cells if cell.score == score):
            table = statistics_table(results, section, score, score_name(score))
            lines += ["", render(replace(table, notes=()), "markdown").rstrip("\n")]
    left = [item for item in AUTHOR if item != PLANNED or results.plan is None]
    lines += ["", "## To be filled in by the author", "", *(f"- [ ] {item}:" for item in left)]
    return "\n".join(lines) + "\n"
