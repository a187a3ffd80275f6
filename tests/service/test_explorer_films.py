"""X-rays for the page: the values of a file, the window that it asks for, and nothing outside a folder."""

import os
import zlib
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest

from explorer_cases import PLAIN, bank, data_of, queries, simulated
from tabon.errors import BadInputError
from tabon.generation.images import encode_image
from tabon.selectors.setup import SelectionSettings
from tabon.service.explorer.export import write_report
from tabon.service.explorer.films import MAX_SIDE, Film, ImageFolder, open_folder, read_film
from tabon.service.explorer.studies import ExplorerSettings, explorer_of

pillow = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")


def film(path, size=(64, 48), **options):
    """Write a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shade = np.linspace(0, 255, size[0] * size[1]).reshape(size[1], size[0]).astype(np.uint8)
    pillow.fromarray(shade).save(path, **options)
    return path


def with_image(name, **facts):
    """Return a query that names an image."""
    return {**simulated()[0], "id": f"{name!r}", "image": name, **facts}


def unpacked(found):
    """Return the stored values of a film, as a page unpacks them."""
    planes = np.frombuffer(zlib.decompress(found.data), np.uint8).astype(np.uint16)
    planes = planes.reshape(found.bits // 8, found.height, found.width)
    moved = planes[0] + (planes[1] << 8 if found.bits == 16 else 0)
    return np.cumsum(moved, axis=1, dtype=np.uint64) % 2**found.bits


def seen(found):
    """Return what a page shows of a film at first, 0 to 255."""
    values = unpacked(found).astype(float)
    grays = 255 * np.clip((values - found.low) / (found.high - found.low), 0, 1)
    return np.where((values == 0) & (found.bits == 16), 0, grays)


def test_images_stay_in_their_folder(tmp_path):
    """Names that climb, start at the root, or lead out by a link are no images; links inside are."""
    root, outside = tmp_path / "root", film(tmp_path / "outside.png")
    film(root / "a" / "in.png")
    (root / "out").symlink_to(tmp_path)
    (root / "out.png").symlink_to(outside)
    (root / "link.png").symlink_to(root / "a" / "in.png")
    (root / "circle").symlink_to(root / "circle")
    os.mkfifo(root / "pipe")
    images = open_folder(root)
    climbing = [
        "../outside.png",
        "a/../../outside.png",
        "a\\..\\..\\outside.png",
        "out/outside.png",
        "out.png",
    ]
    absolute = [str(outside), str(root / "a/in.png"), "/etc/passwd", "C:/x.png", "//host/x.png"]
    nothing = ["circle", "pipe", "a", "", ".", "missing.png", "a/in.png\0", "x" * 5000, 7, None, ["a/in.png"]]
    for name in climbing + absolute + nothing:
        [query] = queries([with_image(name)])
        assert images.path_of(query) is None, name
        assert images.read(query) == {}, name
        assert not images.has_any(query)
    for name in ("a/in.png", "link.png", "./a/in.png"):
        [query] = queries([with_image(name)])
        assert images.path_of(query) == root / "a" / "in.png"
    with pytest.raises(BadInputError, match="folder"):
        open_folder(outside)


def test_images_go_into_the_file_and_broken_ones_do_not(tmp_path):
    """Films have at most 1,024 pixels a side; a broken one is left out and named, the other one stands."""
    root = tmp_path / "images"
    film(root / "big.png", (3000, 1500))
    film(root / "small.jpg")
    (root / "broken.png").write_bytes(film(root / "whole.png").read_bytes()[:60])
    (root / "text.png").write_text("no image")
    names = ("big.png", "small.jpg", "broken.png", "text.png", "../x", "no.png")
    records = [with_image(name, prior_image="small.jpg" if name == "text.png" else None) for name in names]
    notes = []
    path = tmp_path / "page.html"
    settings = SelectionSettings(encoder="hashing")
    studies = explorer_of(bank(), settings, queries(records), ExplorerSettings(images=ImageFolder(root)))
    write_report(studies, path, page=PLAIN, note=notes.append)
    data = data_of(path.read_text())
    found = [study["films"] for study in data["studies"]]
    assert [line["has_image"] for line in data["overview"]["studies"]] == [True] * 4 + [False] * 2
    assert [study["has_image"] for study in data["studies"]] == [True] * 4 + [False] * 2
    named = [films and list(films) for films in found]
    assert named == [["current"], ["current"], None, ["prior"], None, None]
    assert len(notes) == 2
    assert "broken.png" in notes[0]
    sizes = [(one["width"], one["height"]) for one in (found[0]["current"], found[1]["current"])]
    assert sizes == [(MAX_SIDE, MAX_SIDE // 2), (64, 48)]
    record = found[1]["current"]
    assert Film(**{**record, "data": b64decode(record["data"])}) == read_film(root / "small.jpg")


def test_a_picture_of_8_bits_is_its_pixels(tmp_path):
    """A gray PNG comes with the values that it has, and a window over all of them."""
    shade = np.arange(64 * 48).reshape(48, 64).astype(np.uint8)
    pillow.fromarray(shade).save(tmp_path / "one.png")
    found = read_film(tmp_path / "one.png")
    assert (found.bits, found.low, found.high, found.first, found.step) == (8, 0, 255, 0, 1)
    np.testing.assert_array_equal(unpacked(found), shade)


def test_a_picture_of_16_bits_keeps_them(tmp_path):
    """A deep PNG comes with its values; the window goes from the least to the greatest."""
    deep = (np.arange(64 * 48).reshape(48, 64) * 9 + 700).astype(np.uint16)
    pillow.fromarray(deep).save(tmp_path / "deep.png")
    found = read_film(tmp_path / "deep.png")
    assert found.bits == 16
    values = found.first + found.step * unpacked(found)
    np.testing.assert_array_equal(values, deep)
    ends = [found.first + found.step * end for end in (found.low, found.high)]
    assert ends == [deep.min(), deep.max()]


DICOM = {
    "window": {"WindowCenter": 1000, "WindowWidth": 800},
    "narrow": {"WindowCenter": 500, "WindowWidth": 1},
    "several": {"WindowCenter": [900, 100], "WindowWidth": [700, 50]},
    "rescaled": {"WindowCenter": 0, "WindowWidth": 900, "RescaleSlope": 0.5, "RescaleIntercept": -400},
    "fine": {"WindowCenter": 1, "WindowWidth": 3, "RescaleSlope": 0.001, "RescaleIntercept": 0},
    "exact": {"WindowCenter": 1000, "WindowWidth": 800, "VOILUTFunction": "LINEAR_EXACT"},
    "curve": {"WindowCenter": 1000, "WindowWidth": 800, "VOILUTFunction": "SIGMOID"},
    "no window": {},
    "padding": {"WindowCenter": 1000, "WindowWidth": 4000, "PixelPaddingValue": 0},
    "padding range": {"PixelPaddingValue": 0, "PixelPaddingRangeLimit": 40},
}


@pytest.mark.parametrize("photometric", ["MONOCHROME2", "MONOCHROME1"])
@pytest.mark.parametrize("tags", list(DICOM.values()), ids=list(DICOM))
def test_a_dicom_file_is_seen_through_its_own_window(tmp_path, tags, photometric):
    """At first a page shows what a model is sent of the same file, and keeps the values beyond the window."""
    pytest.importorskip("pydicom", reason="the extra `images` is not installed")
    from dicom_images import CANARY, dicom

    pixels = (np.arange(32 * 40, dtype=np.uint16).reshape(32, 40) * 3) % 4000
    path = dicom(tmp_path / "film.dcm", pixels, photometric=photometric, bits=12, **tags)
    found = read_film(path)
    sent = np.asarray(pillow.open(BytesIO(encode_image(path).data))).astype(float)
    np.testing.assert_allclose(seen(found), sent, atol=1.0)
    assert CANARY.encode() not in found.data
    values = found.first + found.step * unpacked(found).astype(float)
    if tags.get("VOILUTFunction") != "SIGMOID":
        kept = pixels * float(tags.get("RescaleSlope", 1)) + float(tags.get("RescaleIntercept", 0))
        inside = unpacked(found) > 0
        np.testing.assert_allclose(values[inside], kept[inside], atol=abs(found.step) / 2 + 1e-9)
        assert inside.all() == ("PixelPaddingValue" not in tags)


def test_a_large_dicom_file_is_made_smaller(tmp_path):
    """Its longer side has at most 1,024 pixels; padding stays outside the picture."""
    pytest.importorskip("pydicom", reason="the extra `images` is not installed")
    from dicom_images import dicom

    pixels = np.full((1500, 3000), 700, np.uint16)
    pixels[:, :600] = 0
    found = read_film(dicom(tmp_path / "film.dcm", pixels, bits=12, PixelPaddingValue=0))
    assert (found.width, found.height) == (MAX_SIDE, MAX_SIDE // 2)
    values = unpacked(found)
    assert (values[:, :190] == 0).all()
    assert (found.first + found.step * values[:, 220:] == 700).all()


def test_a_colour_dicom_file_becomes_gray(tmp_path):
    """Three colours are shown as one gray of 8 bits."""
    pytest.importorskip("pydicom", reason="the extra `images` is not installed")
    from dicom_images import dicom

    pixels = np.full((8, 9, 3), 200, np.uint8)
    found = read_film(dicom(tmp_path / "film.dcm", pixels, photometric="RGB", bits=8))
    assert found.bits == 8
    assert (unpacked(found) == 200).all()
