"""Ratios measured in one run against a named peer or limit: `make bench`.

Times are the best of some repetitions taken in turn; only the ratios mean
anything on another machine. `--quick` runs everything small, for correctness.
"""

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from threadpoolctl import threadpool_info

from encoding import encoding_lines
from evaluation import evaluation_lines
from explanation import explain_lines
from fused_pool import fused_lines
from generation import generation_lines
from large_bank import large_bank_lines
from paper_pipeline import paper_pipeline_lines
from paper_scale import paper_scale_lines
from report_space import report_space_lines
from rewards import rewards_lines
from service import service_lines
from splitting import splitting_lines
from start_up import start_up_lines
from top_k import top_k_lines
from transition_vectors import transition_lines

BENCHMARKS = {
    "transitions": transition_lines,
    "top-k": top_k_lines,
    "paper-scale": paper_scale_lines,
    "paper-pipeline": paper_pipeline_lines,
    "large-bank": large_bank_lines,
    "encoding": encoding_lines,
    "start-up": start_up_lines,
    "generation": generation_lines,
    "evaluation": evaluation_lines,
    "report-space": report_space_lines,
    "fused": fused_lines,
    "explain": explain_lines,
    "splitting": splitting_lines,
    "rewards": rewards_lines,
    "service": service_lines,
}


def machine() -> str:
    """Say with what the numbers were made."""
    threads = ", ".join(
        sorted({f"{info['internal_api']} × {info['num_threads']}" for info in threadpool_info()})
    )
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "pot", "faiss-cpu", "onnxruntime", "torch")
    )
    return f"{platform.machine()}, Python {platform.python_version()}, {packages}; threads: {threads}"


def main() -> None:
    """Run the benchmarks named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(BENCHMARKS), help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs and agrees")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(BENCHMARKS)):
        parser.error(f"no benchmark is called {', '.join(unknown)}; use one of {', '.join(BENCHMARKS)}")
    print("| what | ours | other | against | ratio | goal |\n|---|---|---|---|---|---|")
    for name in arguments.names:
        for line in BENCHMARKS[name](quick=arguments.quick):
            print(line, flush=True)
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
