"""A software bill of materials of this environment: CycloneDX 1.6 as JSON, on standard output."""

import json
import sys
from importlib.metadata import Distribution
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from licences import licence_of
from packages import installed, locked, needs, normal


def bill() -> dict[str, object]:
    """Return the bill: tabon, every other package, and who needs whom."""
    found = installed()
    tabon = found.pop("tabon")
    components = [component(one) for one in found.values()]
    parts = {
        "metadata": {"component": {**component(tabon), "type": "application"}},
        "components": components,
        "dependencies": [dependency(one, found) for one in (tabon, *found.values())],
    }
    serial = uuid5(NAMESPACE_URL, json.dumps(parts, sort_keys=True))  # the same environment, the same bill
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        **parts,
    }


def purl(package: Distribution) -> str:
    """Return a package's name in all such bills."""
    return f"pkg:pypi/{normal(package.name)}@{quote(package.version)}"


def component(package: Distribution) -> dict[str, object]:
    """Return a package with its licence, and the sha256 of its file where it is locked."""
    part: dict[str, object] = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package.name,
        "version": package.version,
        "purl": purl(package),
    }
    if licence := licence_of(package):
        part["licenses"] = [{"expression": licence}]
    if sha256 := locked().get((normal(package.name), package.version)):
        part["hashes"] = [{"alg": "SHA-256", "content": sha256}]
    return part


def dependency(package: Distribution, known: dict[str, Distribution]) -> dict[str, object]:
    """Return which installed packages a package requires; of tabon those of all extras."""
    extras = (
        frozenset(package.metadata.get_all("Provides-Extra", [])) if package.name == "tabon" else frozenset()
    )
    names = {normal(wanted.name) for wanted in needs(package, extras)}
    return {"ref": purl(package), "dependsOn": sorted(purl(known[name]) for name in names & known.keys())}


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1)
    sys.stdout.write("\n")
