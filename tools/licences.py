"""The licences of the pinned packages by SPDX id: `python tools/licences.py > docs/reference/licences.md`."""

import re
import sys
from importlib.metadata import Distribution, metadata

from packages import closure, installed, normal, pins

ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CNRI-Python",
    "ISC",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "MPL-2.0",  # binds changes to its own files only
    "PSF-2.0",
    "Zlib",
}
ALLOWED_FOR = {
    "LGPL-3.0-only": {"psycopg", "psycopg-binary"}
}  # of the extra `postgres`; imported, not changed
READ_BY_HAND = {  # metadata that says nothing, or only "BSD": read in the package's licence file
    "agent-client-protocol": "Apache-2.0",
    "colorama": "BSD-3-Clause",
    "cycler": "BSD-3-Clause",
    "fhir-core": "BSD-3-Clause",
    "fhir-resources": "BSD-3-Clause",
    "ipython-pygments-lexers": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "kiwisolver": "BSD-3-Clause",
    "jsonlines": "BSD-3-Clause",
    "mistralai": "Apache-2.0",
    "mpmath": "BSD-3-Clause",
    "nest-asyncio2": "BSD-2-Clause",
    "prompt-toolkit": "BSD-3-Clause",
    "pyasn1-modules": "BSD-2-Clause",
    "s3fs": "BSD-3-Clause",
    "scipy": "BSD-3-Clause",
    "sympy": "BSD-3-Clause",
}
SPDX = {  # what packages without an SPDX expression say, in the field or in a classifier
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 3-Clause License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
HIDDEN_EXTRAS = {"all", "bench", "dev"}  # they hold the others


def ids(expression: str) -> set[str]:
    """Return the licences that an SPDX expression names."""
    return set(filter(None, re.split(r"\s+(?:AND|OR)\s+|[()]", expression)))


def licence_of(package: Distribution) -> str | None:
    """Return a package's licence as an SPDX expression, or None where nobody knows it."""
    said = package.metadata
    known = READ_BY_HAND.get(normal(package.name)) or said.get("License-Expression")
    classifiers = [line.rpartition(" :: ")[2] for line in said.get_all("Classifier", []) if "License" in line]
    field = str(said.get("License", "")).partition("\n")[0]
    for words in (known, field, *classifiers):
        expression = SPDX.get(words or "", words or "")
        if ids(expression) and ids(expression) <= ALLOWED | ALLOWED_FOR.keys():
            return expression
    return known


def conflicts() -> list[str]:
    """Say of each pinned package whose licence is unknown, or does not go with ours, what it is."""
    found = installed()
    return [
        f"{name}: {licence or 'no licence is known'}"
        for name in pins()
        if name in found and not fits(name, licence := licence_of(found[name]))
    ]


def fits(name: str, licence: str | None) -> bool:
    """Say whether a package with this licence may be a dependency."""
    allowed = ALLOWED | {one for one, names in ALLOWED_FOR.items() if name in names}
    return licence is not None and ids(licence) <= allowed


def brought_by() -> dict[str, str]:
    """Return what of tabon brings each package: itself, some extras, or only its development."""
    found = installed()
    tabon = found["tabon"]
    extras = set(metadata("tabon").get_all("Provides-Extra", [])) - HIDDEN_EXTRAS
    brought = {extra: closure(tabon, frozenset({extra})) for extra in sorted(extras)}
    always, developing = closure(tabon, frozenset()), closure(tabon, frozenset({"dev"}))
    table = {}
    for name in found:
        by = [extra for extra in brought if name in brought[extra]]
        rest = "development" if name in developing else "building and tests"
        table[name] = "always" if name in always else ", ".join(by) or rest
    return table


def page() -> str:
    """Return the page of licences."""
    found, brought = installed(), brought_by()
    rows = [
        f"| {found[name].name} | {licence_of(found[name])} | {brought[name]} |" for name in sorted(pins())
    ]
    return "\n".join([HEAD, *rows, ""])


HEAD = """# Licences (licenses) of the dependencies

Written by `make licences` from what the packages of `constraints.txt` say of themselves. A test keeps it
fresh and refuses a licence that conflicts with Apache-2.0 ([the rules](../decisions/supply-chain.md)). The
last column is what brings a package: tabon itself (always), its extras, or its development.

| package | licence (SPDX) | comes with |
|---|---|---|"""


if __name__ == "__main__":
    sys.stdout.write(page())
