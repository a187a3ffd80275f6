# %% [markdown]
# # Your own drafts in ten minutes
#
# You have reports of earlier visits, and several drafts of the next report from a generator of yours. This
# notebook goes from two tables to a choice, and to a comparison that a reviewer can read.
#
# It runs in the light environment: `make demo` makes it, without torch and without a GPU. The patients here
# are made up: what the figures show is how to read them, they say nothing about real reports.
#
# ## Two tables
#
# Visits have one row per report, drafts one row per draft. Names of columns and the form of dates are
# guessed ([what is understood](../../docs/guide/own-files.md)). Put your files in the place of these two.

# %%
import csv
from pathlib import Path

import tabon

made_up = tabon.simulate(patients=120, num_drafts=5, prompt="p3", seed=8)
moves = [(move.prior, move.current, ()) for move in made_up.transitions]
moves += [(query.prior, tabon.Report(**query.reference), query.candidates) for query in made_up.queries]
with Path("visits.csv").open("w", newline="") as visits, Path("drafts.csv").open("w", newline="") as drafts:
    visit_rows, draft_rows = csv.writer(visits), csv.writer(drafts)
    for table in (visit_rows, draft_rows):
        table.writerow(["Patient", "Exam Date", "Findings", "Impression"])
    for number, (prior, current, candidates) in enumerate(moves, start=1):
        visit_rows.writerow([number, "14/3/2024", *prior.sections().values()])
        visit_rows.writerow([number, "20/6/2024", *current.sections().values()])
        draft_rows.writerows([number, "20/6/2024", *draft.sections().values()] for draft in candidates)

print(*Path("visits.csv").read_text().splitlines()[:3], sep="\n")

# %% [markdown]
# ## Read them
#
# Patients with drafts are the test split. All others train: their changes from one report to the next are
# what a draft's change is compared with.

# %%
cohort = tabon.read_visits("visits.csv", "drafts.csv")
for guess in cohort.guesses:
    print(f"{guess.what}: {guess.found}")
cohort

# %% [markdown]
# ## Build a bank, choose a draft
#
# The bank holds the training patients' changes as vectors. `fused` is the strongest selector over all kinds
# of drafts ([evidence](../../docs/reference/evidence.md)).

# %%
bank = tabon.TransitionBank.build(cohort.transitions)
fused = tabon.Selector(bank, "fused")
query = cohort.queries[1]
choice = fused.select(query.prior, query.candidates, patient=query.patient)
choice

# %%
print("before: ", query.prior.impression)
for number, draft in enumerate(query.candidates):
    print("chosen: " if number == choice.selected else "        ", draft.impression.replace("\n", " "))
print("written:", query.reference["impression"])

# %% [markdown]
# Distances, not scores: the lowest is chosen. `explain` says what decided ([how to read
# it](../../docs/guide/explain.md)).

# %%
from tabon.explanation import explanation_text

why = tabon.explain(fused, query, neighbours=1)
print(explanation_text(why).partition("\n\n")[0])

# %% [markdown]
# ## Is it better than a random pick?
#
# What the radiologist wrote is known here, so picks can be measured. 0 % of the gap is a random pick, 100 %
# the best draft each time ([evaluation](../../docs/guide/evaluation.md)).

# %%
names = ("fused", "consensus:rouge-l-f", "paper")
picks = {name: tabon.Selector(bank, name).select_many(cohort.queries) for name in names}
found = tabon.evaluate(cohort.queries, picks, metrics=["rouge"], resamples=1000)
found

# %%
found.compare("fused", "consensus:rouge-l-f")

# %% [markdown]
# A handful of patients proves nothing: the intervals say so. With yours, look at the intervals first.
#
# ## Keep it
#
# The bank and the results are files, which the command line reads, too.

# %%
bank.save("bank.tabon")
found.save("results.json")

# %% [markdown]
# Next: [what is in the results file](results_file.py), [a service that chooses](service.py), or the same
# from the [command line](../../docs/guide/first-steps.md).
