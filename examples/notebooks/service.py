# %% [markdown]
# # A service that chooses
#
# `tabon serve` answers over HTTP: a prior and drafts in, the chosen draft out. This notebook starts one on
# this machine, asks it as any program would, and stops it.
#
# It runs in the light environment: `make demo` makes it.
#
# ## A bank, a study

# %%
import tabon

cohort = tabon.simulate(patients=120, num_drafts=3, prompt="p3", seed=2)
tabon.TransitionBank.build(cohort.transitions, encoder="hashing").save(
    "bank.tabon"
)  # for real work: leave encoder out
query = cohort.queries[0]
body = {
    "id": query.id,
    "prior": query.prior.sections(),
    "candidates": [draft.sections() for draft in query.candidates],
    "patient": query.patient,
}

# %% [markdown]
# ## Start it
#
# It binds this machine alone and takes a free port, which its log names. In a shell one line does it:
# `tabon serve --bank bank.tabon --selector fused`.

# %%
import re
import subprocess
import sys
from pathlib import Path

tabon_here = Path(sys.executable).with_name("tabon")
command = [tabon_here, "serve", "--bank", "bank.tabon", "--selector", "fused", "--port", "0"]
service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
line = next(line for line in service.stderr if "running on" in line)
address = re.search(r"http://[\d.:]+", line)[0]
address

# %% [markdown]
# ## Ask it
#
# The answer is the record that `tabon select` writes, and names the chosen draft, its distances, its margin
# and the settings behind it.

# %%
import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen


def ask(path, sent=None):
    """Send JSON, or ask for a page, and return the answer's status and text."""
    data = None if sent is None else json.dumps(sent).encode()
    request = Request(address + path, data, {"Content-Type": "application/json"})
    try:
        with urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


status, text = ask("/v1/select", body)
answer = json.loads(text)
print(status, {name: answer[name] for name in ("selected", "total_distances", "margin")})
print(query.candidates[answer["selected"]].impression)

# %% [markdown]
# ## When it cannot choose
#
# Two things that a client should expect. If nothing can be chosen the service **abstains**: that is an
# answer (200) with `selected` null and a reason. A request that is wrong gets one sentence and a hint; what
# was sent is never repeated.

# %%
status, text = ask("/v1/select", {**body, "candidates": []})
print(status, {name: json.loads(text)[name] for name in ("selected", "abstained")})

# %%
print(*ask("/v1/select", {name: value for name, value in body.items() if name != "id"}))

# %% [markdown]
# ## Watch it
#
# `/readyz` says whether it may be asked, `/metrics` counts for Prometheus. Neither holds text.

# %%
print(*ask("/readyz"))
counts = [
    line for line in ask("/metrics")[1].splitlines() if line.startswith("tabon") and "/v1/select" in line
]
print(*(line for line in counts if "_total" in line), sep="\n")

# %% [markdown]
# ## Stop it
#
# SIGTERM ends it after the requests in flight.

# %%
service.terminate()
service.communicate()
service.returncode

# %% [markdown]
# Next: tokens, limits and batches in [the service](../../docs/guide/service.md); best of N behind OpenAI's
# API in [the gateway](../../docs/guide/gateway.md); [in a container](../../docs/guide/container.md).
