# %% [markdown]
# # Reading a results file
#
# `tabon evaluate`, `tabon compare`, `tabon reproduce` and `Evaluation.save` write `results.json`: every
# number that they measured, unrounded, with its interval. This notebook reads one, from the whole table to
# a single cell.
#
# It needs the extra `plots` for the picture; all else runs in the light environment.
#
# ## A file to read
#
# Take your own `results.json`, and leave this cell out.

# %%
import tabon

cohort = tabon.simulate(patients=600, num_drafts=5, prompt="p3", seed=4)
bank = tabon.TransitionBank.build(cohort.transitions, encoder="hashing")  # letters alone: quick, for tests
picks = {
    name: tabon.Selector(bank, name).select_many(cohort.queries)
    for name in ("fused", "consensus:rouge-l-f", "longest")
}
tabon.evaluate(cohort.queries, picks, metrics=["rouge"], resamples=1000).save("results.json")

# %% [markdown]
# ## The tables
#
# One for each section (`found` alone shows all of them): a row for each selector, and the reference rows.
# *Random* is the expected value of a random pick, without drawing. *Oracle* is the best draft of each
# study, score by score: no selector can be above it.

# %%
from tabon.reporting.tables import render

found = tabon.Evaluation.load("results.json")
print(render(found.tables()[0], "text"))

# %% [markdown]
# ## One number
#
# A number has a place: the run (one set of drafts), the section, the selector, the score.

# %%
results = found.results
print("runs:    ", [run.name for run in results.runs])
print("sections:", results.sections())
print("methods: ", list(results.methods))
print("scores:  ", list(results.scores))

# %%
cell = results.cell(run="drafts", section="impression", method="fused", score="rouge-l-f")
print(f"score {cell.value:.3f}, 95 % interval {cell.low:.3f} to {cell.high:.3f}, {cell.n} studies")
print(f"{cell.delta:+.3f} against a random pick")
print(f"gap closed: {cell.gap:.0%}, 95 % interval {cell.gap_low:.0%} to {cell.gap_high:.0%}")
print(f"better than a random pick in {cell.wins} studies, worse in {cell.losses}, as good in {cell.ties}")
print(f"p = {cell.p:.3g}; after Holm's correction over the headline scores {cell.holm:.3g}")

# %% [markdown]
# How to read it:
#
# - **gap closed** puts different scores on one scale: 0 % is a random pick, 100 % the oracle. Below 0 is
#   worse than random.
# - **the interval** is over patients, who are drawn anew with all their studies. One that holds 0 does not
#   show a gain.
# - **p** is of a paired randomisation against a random pick. Report the corrected one, `holm`.
# - **None**, a dash in a table, was not measured. It is never 0. `results.missing` has the reason.
#
# ## Two selectors against each other
#
# Two intervals that overlap may still belong to a clear difference, as both were measured on the same
# studies. Compare the two.

# %%
found.compare("fused", "longest")

# %% [markdown]
# ## A picture, and LaTeX
#
# `tabon table results.json --format latex` writes what your paper needs; the same from here:

# %%
found.plot("impression")

# %%
print(render(found.tables()[0], "latex")[:400], "…")

# %% [markdown]
# ## Without tabon
#
# It is plain JSON, for R or a spreadsheet:
# [every field](../../docs/reference/file-formats.md#fields-of-the-results-file-output-of-tabon-evaluate).

# %%
import json
from pathlib import Path

cells = json.loads(Path("results.json").read_text(encoding="utf-8"))["cells"]
for one in cells:
    if (one["section"], one["score"]) == ("impression", "rouge-l-f"):
        print(f"{one['method']:<20} {one['value']:.3f}")
