"""A small archive in the form of Open-i's, with made-up reports."""

import io
import tarfile

import numpy as np

HEADS = ("opacity", "effusion", "cardiomegaly", "scoliosis")
SIDES = ("left", "right", "mild")


def study(number, findings, impression, majors):
    """One study as Open-i writes it."""
    codes = "".join(f"<major>{major}</major>" for major in majors)
    return (
        f'<eCitation><Abstract><AbstractText Label="FINDINGS">{findings}</AbstractText>'
        f'<AbstractText Label="IMPRESSION">{impression}</AbstractText></Abstract>'
        f"<MeSH>{codes}</MeSH><uId id='CXR{number}'/></eCitation>"
    )


def made_up_studies():
    """Eighty studies: normal ones, duplicates, and codes with qualifiers; and three that cannot be used."""
    draw = np.random.default_rng(5)
    studies = {}
    for number in range(1, 81):
        heads = draw.choice(HEADS, size=int(draw.integers(0, 3)), replace=False)
        majors = [f"{head}/{draw.choice(SIDES)}" for head in heads] or ["normal"]
        words = " ".join(majors).replace("/", " ")
        extra = int(draw.integers(0, 6))
        studies[number] = study(
            number, f"There is {words}. Line {extra}.", f"{words.capitalize()} seen.", majors
        )
    studies[81] = study(81, "Clear lungs.", "Normal chest.", ["No Indexing"])
    studies[82] = study(82, "", "Normal chest.", ["normal"])
    studies[83] = study(83, "Clear lungs.", "Normal chest.", [])
    return studies


def write_archive(path, studies):
    """Pack studies as Open-i packs them, in the order given."""
    with tarfile.open(path, "w:gz") as archive:
        for number, text in studies.items():
            data = text.encode()
            entry = tarfile.TarInfo(f"ecgen-radiology/{number}.xml")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path
