r"""Every printed number of the paper's result tables, parsed from its LaTeX source.

Shares nothing with src/: test_paper_values.py parses the paper again where it lies beside the project and
compares with the committed CSV. `python tests/helpers/paper_tex.py` writes that CSV.
"""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT.parent / "shared" / "paper.tex"
VALUES = ROOT / "src" / "tabon" / "reporting" / "tables" / "paper_values.csv"
FIELDS = ("table", "section", "run", "method", "column", "value", "relative")
SECTIONS = {"impressions": "impression", "findings": "findings"}
SHORT = {"MS": "mean-shift", "Nov": "novelty", "DH": "dir-hausdorff", "OT": "cost-ot", "m": "min", "k": "knn"}
DELTA_COLUMNS = {"bertscore": "BERTSc", "radgraph": "RadGraph"}
NUMBER = re.compile(r"([+-]?\d\.\d{3})(?:\(([+-]\d+\.\d)%\))?")


def plain(text):
    """Take the marks off: only what a reader sees is left."""
    text = text.replace(r"\%", "%").replace("$", "")
    while (bare := re.sub(r"\\(?:textsc|textit|textbf|textsubscript|emph)\{([^{}]*)\}", r"\1", text)) != text:
        text = bare
    return text.strip()


def tables(source):
    """Yield the label and the rows of cells of each table whose label is one of the results'."""
    for body in re.findall(r"\\begin\{table\}.*?\\end\{table\}", source, flags=re.DOTALL):
        label = re.search(r"\\label\{tab:((?:avg|per-run|delta)-[\w-]+)\}", body)
        if label:
            inside = re.search(r"\\toprule(.*?)\\bottomrule", body, flags=re.DOTALL)[1]
            bare = re.sub(r"\\(?:midrule|cmidrule\(lr\)\{1-9\})", "", inside)
            yield label[1], [line.split(" & ") for line in bare.split(r"\\") if line.strip()]


def number(cell):
    """Return the value and the relative change of a cell as decimal texts, the second "" where none is."""
    value, percent = NUMBER.fullmatch(plain(cell)).groups()
    if percent is None:
        return value.lstrip("+"), ""
    sign = "-" if percent.startswith("-") else ""
    return value, f"{sign}{abs(float(percent)) / 100:.3f}"


def method_name(cell):
    """Return tabon's name of a row: `Mean-Shift / min` is mean-shift/min."""
    text = plain(cell)
    if text.startswith("Random baseline"):
        return "random"
    return "mean-of-methods" if text.startswith("Mean of") else text.lower().replace(" / ", "/")


def headline(section, rows):
    """Yield the records of a headline table: a row a method."""
    head, *lines = rows
    for name, *cells in lines:
        for column, cell in zip(head[1:], cells, strict=True):
            yield "headline", section, "mean", method_name(name), column.strip(), *number(cell)


def per_run(section, rows):
    """Yield the records of a per-run table: two blocks, each ended by its mean."""
    head, *lines = rows
    method = None
    for line in lines:
        if len(line) == 1:
            method = method_name(re.search(r"\{l\}\{(.*)\}", line[0])[1].replace(" (absolute values)", ""))
            continue
        mean = r"\textit{mean}" in line[0]
        run, cells = ("mean", line[1:]) if mean else (f"{line[0].strip()} {line[1]}", line[2:])
        for column, cell in zip(head[2:], cells, strict=True):
            yield "per-run", section, run, method, column.strip(), *number(cell)


def delta(section, column, rows):
    """Yield the records of a delta table: a row a run, a column a method."""
    head, *lines = rows
    methods = ["/".join(SHORT[part] for part in name.split(" / ")) for name in head[2:-1]] + ["random"]
    for model, prompt, *cells in lines:
        for method, cell in zip(methods, cells, strict=True):
            yield "delta", section, f"{model.strip()} {prompt}", method, column, *number(cell)


def records(source):
    """Yield all records of the paper in its order."""
    for label, rows in tables(source):
        kind, _, rest = label.rpartition("-")
        section = SECTIONS[rest]
        if kind == "avg":
            yield from headline(section, rows)
        elif kind == "per-run":
            yield from per_run(section, rows)
        else:
            yield from delta(section, DELTA_COLUMNS[kind.removeprefix("delta-")], rows)


def main():
    """Write the CSV anew."""
    with VALUES.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([FIELDS, *records(PAPER.read_text())])


if __name__ == "__main__":
    main()
