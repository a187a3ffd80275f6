"""A small experiment file."""

EXPERIMENT = """
title = "Two runs"

[cohort]
patients = 100

[[runs]]
name = "Hasty P1"
model = "hasty"
prompt = "p1"
noise = 0.8
label = "The hasty one"

[[runs]]
name = "Careful P3"
model = "careful"
prompt = "p3"
noise = 0.3

[drafts]
samples = 3

[selection]
encoder = "hashing"
neighbours = 5
selectors = ["fused", "consensus:rouge-l-f"]

[evaluation]
metrics = ["rouge", "chexbert"]
resamples = 50

[report]
deltas = ["ROUGE-L"]
curve = "ROUGE-L"
neighbours = [1, 2, 5]

[report.columns]
"ROUGE-1" = "rouge-1-f"
"ROUGE-L" = "rouge-l-f"
"CheX-14" = "chexbert-14-micro"
"""
