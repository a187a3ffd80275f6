"""What several browser tests of the explorer look at: the same studies, as one file and as its data."""

import numpy as np
import pytest

from browser import chromium


@pytest.fixture(scope="module")
def browser():
    """One browser for a whole file of tests."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def studies(tmp_path_factory):
    """Simulated studies with a score and a second selector, and odd ones; the first two have images."""
    image = pytest.importorskip("PIL.Image")
    from explorer_service import studies_in

    folder = tmp_path_factory.mktemp("images")
    shade = np.linspace(0, 255, 64 * 48).astype(np.uint8).reshape(48, 64)
    image.fromarray(shade).save(folder / "one.png")
    return studies_in(folder)


@pytest.fixture(scope="session")
def report(studies, tmp_path_factory):
    """These studies as one file."""
    from tabon.service.explorer.export import write_report

    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(studies, path)
    return path


@pytest.fixture(scope="session")
def data(report):
    """The data inside that file."""
    from explorer_cases import data_of

    return data_of(report.read_text(encoding="utf-8"))
