"""Images: what is sent holds the pixels, looked at as they are meant, and nothing else."""

import struct
import zlib
from hashlib import sha256
from io import BytesIO

import numpy as np
import pytest

from dicom_images import CANARY, dicom
from tabon.errors import BadInputError, MissingExtraError
from tabon.generation import images
from tabon.generation.images import MAX_SIDE, encode_image

Image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
PngInfo = pytest.importorskip("PIL.PngImagePlugin").PngInfo
pydicom = pytest.importorskip("pydicom", reason="the extra `images` is not installed")

RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)
NOISE = np.random.default_rng(0).integers(0, 256, (24, 40), dtype=np.uint8)


def decoded(encoded):
    """Return the pixels that were sent, after checking the hash."""
    assert encoded.sha256 == sha256(encoded.data).hexdigest()
    with Image.open(BytesIO(encoded.data)) as image:
        image.load()
        assert image.get_format_mimetype() == encoded.media_type
        return np.asarray(image)


def saved(path, array, **options):
    """Save an array as an image."""
    Image.fromarray(array).save(path, **options)
    return path


# --- PNG and JPEG ----------------------------------------------------------------------


@pytest.mark.parametrize("array", [NOISE, np.dstack([NOISE] * 3)], ids=["gray", "rgb"])
@pytest.mark.parametrize(("suffix", "media_type"), [("png", "image/png"), ("jpg", "image/jpeg")])
def test_a_small_8_bit_image_is_sent_as_it_is(tmp_path, array, suffix, media_type):
    """PNG and JPEG that fit and hold pixels only are not written anew."""
    path = saved(tmp_path / f"a.{suffix}", array)
    encoded = encode_image(path)
    assert encoded.data == path.read_bytes()
    assert encoded.media_type == media_type
    assert encoded.sha256 == sha256(path.read_bytes()).hexdigest()


def test_the_first_bytes_say_what_it_is(tmp_path):
    """The name's ending is not believed."""
    path = saved(tmp_path / "a.dcm", NOISE, format="PNG")
    assert encode_image(path).media_type == "image/png"


def test_a_large_image_is_made_smaller_with_its_aspect(tmp_path):
    """The longer side becomes the limit, the other follows; the limit itself is left alone."""
    path = saved(tmp_path / "a.png", np.zeros((200, 100), np.uint8))
    assert decoded(encode_image(path, max_side=50)).shape == (50, 25)
    assert encode_image(path, max_side=200).data == path.read_bytes()
    thin = saved(tmp_path / "thin.png", np.zeros((400, 1), np.uint8))
    assert decoded(encode_image(thin, max_side=100)).shape == (100, 1)
    assert MAX_SIDE == 1536


def test_the_same_file_gives_the_same_bytes(tmp_path):
    """Encoding has no clock and no chance in it."""
    path = saved(tmp_path / "a.png", np.tile(NOISE, (4, 4)))
    assert encode_image(path, max_side=64) == encode_image(path, max_side=64)


def test_16_bit_values_are_spread(tmp_path):
    """A 16-bit file that uses 12 bits is not sent black."""
    path = saved(tmp_path / "a.png", np.array([[0, 1000, 4095]], np.uint16))
    assert decoded(encode_image(path)).tolist() == [[0, 62, 255]]


def test_an_image_of_one_value_is_black(tmp_path):
    """There is nothing to spread, and nothing is divided by zero."""
    path = saved(tmp_path / "a.png", np.full((3, 3), 700, np.uint16))
    assert decoded(encode_image(path)).max() == 0


def test_a_palette_is_looked_up(tmp_path):
    """A palette image is sent as the gray that it shows, not as its indices."""
    image = Image.new("P", (2, 1))
    image.putpalette([200, 200, 200, 10, 10, 10])
    image.putdata([0, 1])
    image.save(tmp_path / "a.png")
    assert decoded(encode_image(tmp_path / "a.png")).tolist() == [[200, 10]]


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_what_is_transparent_is_black(tmp_path, mode):
    """Transparent pixels show the black that surrounds a film."""
    gray = Image.new("L", (2, 1), 200)
    alpha = Image.frombytes("L", (2, 1), bytes([255, 0]))
    Image.merge(mode, [gray] * (len(mode) - 1) + [alpha]).save(tmp_path / "a.png")
    assert decoded(encode_image(tmp_path / "a.png")).tolist() == [[200, 0]]


@pytest.mark.parametrize("mode", ["1", "CMYK"])
def test_other_modes_become_gray(tmp_path, mode):
    """One-bit PNG and CMYK JPEG are written anew."""
    path = tmp_path / ("a.png" if mode == "1" else "a.jpg")
    Image.fromarray(RAMP).convert("RGB").convert(mode).save(path)
    assert decoded(encode_image(path)).shape == (16, 16)


def test_exif_orientation_is_applied(tmp_path):
    """A photograph of a film that lies on its side is sent upright, without its EXIF."""
    array = np.zeros((16, 32), np.uint8)
    array[:, :16] = 255  # bright on the left
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise to look at it
    exif[0x010E] = CANARY
    path = saved(tmp_path / "a.jpg", array, exif=exif, quality=95)
    encoded = encode_image(path)
    shown = decoded(encoded)
    assert shown.shape == (32, 16)
    assert shown[:12].min() > 200
    assert shown[20:].max() < 50
    assert CANARY.encode() not in encoded.data


@pytest.mark.parametrize("place", ["text", "comment", "after"])
def test_what_stands_beside_the_pixels_is_not_sent(tmp_path, place):
    """Text chunks, comments and bytes after the end do not leave."""
    path = tmp_path / ("a.jpg" if place == "comment" else "a.png")
    if place == "comment":
        saved(path, NOISE, comment=CANARY)
    else:
        info = PngInfo()
        if place == "text":
            info.add_text("Patient", CANARY)
        saved(path, NOISE, pnginfo=info)
    if place == "after":
        path.write_bytes(path.read_bytes() + CANARY.encode())
    assert CANARY.encode() in path.read_bytes()
    encoded = encode_image(path)
    assert CANARY.encode() not in encoded.data
    if place != "comment":
        np.testing.assert_array_equal(decoded(encoded), NOISE)


# --- broken and hostile files ----------------------------------------------------------


@pytest.mark.parametrize("suffix", ["png", "jpg", "dcm"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_truncated_file_is_one_sentence(tmp_path, suffix, share):
    """A file that is cut anywhere is named, and nothing is sent of it."""
    pixels = np.tile(NOISE, (4, 4))
    path = tmp_path / f"a.{suffix}"
    _ = dicom(path, pixels.astype(np.uint16)) if suffix == "dcm" else saved(path, pixels)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(BadInputError, match=rf"a\.{suffix} .*; copy it again$"):
        encode_image(path)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("seed", range(60))
def test_flipped_bytes_never_escape_as_something_else(tmp_path, seed, caplog, recwarn):
    """Whatever is broken, the answer is an image or one sentence, and no log tells the name."""
    rng = np.random.default_rng(seed)
    suffix = ("png", "jpg", "dcm")[seed % 3]
    path = tmp_path / f"a.{suffix}"
    _ = dicom(path, NOISE.astype(np.uint16)) if suffix == "dcm" else saved(path, NOISE)
    data = bytearray(path.read_bytes())
    for place in rng.integers(*((132, 700) if suffix == "dcm" else (8, len(data))), size=6):
        data[place] = rng.integers(256)
    path.write_bytes(bytes(data))
    try:
        said = repr(encode_image(path).data)
    except BadInputError as error:
        said = str(error)
    assert "CANARY" not in said + caplog.text + "".join(str(warning.message) for warning in recwarn)


def test_a_value_that_runs_over_the_name_is_not_told(tmp_path, caplog):
    """A transfer syntax whose length is wrong holds the name; nothing repeats it."""
    path = dicom(tmp_path / "a.dcm", NOISE.astype(np.uint16))
    before, tag, after = path.read_bytes().partition(b"\x02\x00\x10\x00UI")
    path.write_bytes(before + tag + struct.pack("<H", 1500) + after[2:])
    with pytest.raises(BadInputError, match="copy it again") as caught:
        encode_image(path)
    assert "CANARY" not in str(caught.value) + caplog.text


def png_header(width, height):
    """Make a PNG that promises many pixels and has none."""
    body = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", body) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [10_000, 12_000, 100_000, 2**31 - 1])
def test_a_header_that_promises_too_much_is_refused(tmp_path, side):
    """A decompression bomb is turned away by its header, without a warning."""
    path = tmp_path / "bomb.png"
    path.write_bytes(png_header(side, side))
    with pytest.raises(BadInputError, match=rf"{side} x {side} pixels"):
        encode_image(path)


def test_a_dicom_header_that_promises_too_much_is_refused(tmp_path):
    """The same holds for DICOM."""
    path = dicom(tmp_path / "a.dcm", NOISE.astype(np.uint16), Rows=65535, Columns=65535)
    with pytest.raises(BadInputError, match="65535 x 65535 pixels"):
        encode_image(path)


def test_a_file_that_is_too_long_is_not_read(tmp_path, monkeypatch):
    """The length is looked at first."""
    monkeypatch.setattr(images, "MAX_BYTES", 10)
    with pytest.raises(BadInputError, match="10 are allowed"):
        encode_image(saved(tmp_path / "a.png", NOISE))


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"%PDF-1.7", b"\x00" * 300])
def test_other_files_are_refused(tmp_path, data):
    """What is not an image is named with the formats that are."""
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(BadInputError, match="not a PNG, JPEG or DICOM file"):
        encode_image(tmp_path / "a.png")


def test_a_missing_file_and_a_useless_limit_are_named(tmp_path):
    """Both are one sentence with the way out."""
    with pytest.raises(BadInputError, match=r"nowhere\.png cannot be read"):
        encode_image(tmp_path / "nowhere.png")
    with pytest.raises(BadInputError, match="max_side is 0"):
        encode_image(tmp_path / "nowhere.png", max_side=0)


def test_an_animation_is_refused(tmp_path):
    """Which frame is meant is not guessed."""
    frames = [Image.fromarray(NOISE), Image.fromarray(NOISE[::-1].copy())]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:])
    with pytest.raises(BadInputError, match="2 frames"):
        encode_image(tmp_path / "a.png")


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    """Without Pillow the message says what to install."""

    def missing(_module, *, extra, feature):
        raise MissingExtraError(feature, extra)

    path = saved(tmp_path / "a.png", NOISE)
    monkeypatch.setattr(images, "require", missing)
    with pytest.raises(MissingExtraError, match=r"tabon\[images\]"):
        encode_image(path)


# --- DICOM -----------------------------------------------------------------------------


def test_monochrome_polarity(tmp_path):
    """MONOCHROME1 shows low values bright, MONOCHROME2 dark."""
    pixels = np.array([[0, 100, 255]], np.uint8)
    plain = decoded(encode_image(dicom(tmp_path / "2.dcm", pixels, bits=8)))
    inverted = decoded(encode_image(dicom(tmp_path / "1.dcm", pixels, bits=8, photometric="MONOCHROME1")))
    assert plain.tolist() == [[0, 100, 255]]
    assert inverted.tolist() == [[255, 155, 0]]


def test_12_bits_stored_in_16(tmp_path):
    """Without a window, the values that occur are spread over the grays."""
    pixels = np.array([[0, 1000, 4095]], np.uint16)
    assert decoded(encode_image(dicom(tmp_path / "a.dcm", pixels, bits=12))).tolist() == [[0, 62, 255]]


def test_a_window_is_applied_as_the_standard_says(tmp_path):
    """PS3.3 C.11.2.1.2: linear between c - 0.5 - (w - 1)/2 and c - 0.5 + (w - 1)/2."""
    pixels = np.array([[0, 1000, 1500, 2000, 2500, 3000, 4095]], np.uint16)
    path = dicom(tmp_path / "a.dcm", pixels, bits=12, WindowCenter=2000, WindowWidth=1001)
    low, high = 2000 - 0.5 - 500, 2000 - 0.5 + 500
    expected = np.rint(np.clip((pixels - low) / (high - low), 0, 1) * 255)
    np.testing.assert_array_equal(decoded(encode_image(path)), expected)


def test_a_window_is_not_spread_again(tmp_path):
    """An image that stays in the middle of its window stays gray."""
    pixels = np.array([[2000, 2100]], np.uint16)
    path = dicom(tmp_path / "a.dcm", pixels, bits=12, WindowCenter=2048, WindowWidth=4096)
    assert decoded(encode_image(path)).tolist() == [[125, 131]]


def test_the_first_of_several_windows_is_taken(tmp_path):
    """Other windows are other views of the same image."""
    pixels = np.arange(0, 4096, 273, dtype=np.uint16).reshape(4, 4)
    one = dicom(tmp_path / "1.dcm", pixels, bits=12, WindowCenter=1000, WindowWidth=500)
    two = dicom(tmp_path / "2.dcm", pixels, bits=12, WindowCenter=[1000, 3000], WindowWidth=[500, 100])
    assert encode_image(one) == encode_image(two)


def test_a_sigmoid_window(tmp_path):
    """PS3.3 C.11.2.1.3.1, and no warning far away from its centre."""
    pixels = np.array([[0, 2000, 4095]], np.uint16)
    tags = {"WindowCenter": 2000, "WindowWidth": 1000, "VOILUTFunction": "SIGMOID"}
    path = dicom(tmp_path / "a.dcm", pixels, bits=12, **tags)
    expected = np.rint(255 / (1 + np.exp(-4 * (pixels - 2000.0) / 1000)))
    np.testing.assert_array_equal(decoded(encode_image(path)), expected)


def test_signed_values_are_rescaled_before_the_window(tmp_path):
    """Slope and intercept come first, for negative stored values too."""
    pixels = np.array([[-1000, 0, 1000]], np.int16)
    tags = {"RescaleSlope": 2, "RescaleIntercept": 100, "VOILUTFunction": "LINEAR_EXACT"}
    path = dicom(tmp_path / "a.dcm", pixels, signed=True, WindowCenter=100, WindowWidth=8000, **tags)
    assert decoded(encode_image(path)).tolist() == [[64, 128, 191]]


def test_a_voi_table_of_8_bit_entries(tmp_path):
    """A table of 4096 entries of 8 bits is looked up without wrapping around."""
    item = pydicom.Dataset()
    item.LUTDescriptor = [4096, 0, 8]
    item.LUTData = [value // 16 for value in range(4096)]
    item["LUTDescriptor"].VR, item["LUTData"].VR = "US", "US"
    pixels = np.array([[0, 300, 2048, 4095]], np.uint16)
    path = dicom(tmp_path / "a.dcm", pixels, bits=12, VOILUTSequence=[item])
    assert decoded(encode_image(path)).tolist() == [[0, 18, 128, 255]]


@pytest.mark.parametrize("vr", ["US", "OW"])
def test_a_voi_table_that_begins_later(tmp_path, vr):
    """Values outside the table take its first and last entry, whichever way it is stored."""
    entries = np.array([0, 500, 1023], "<u2")
    item = pydicom.Dataset()
    item.LUTDescriptor = [3, 100, 10]
    item.LUTData = entries.tolist() if vr == "US" else entries.tobytes()
    item["LUTDescriptor"].VR, item["LUTData"].VR = "US", vr
    pixels = np.array([[0, 100, 101, 102, 900]], np.uint16)
    path = dicom(tmp_path / "a.dcm", pixels, bits=12, VOILUTSequence=[item])
    assert decoded(encode_image(path)).tolist() == [[0, 0, 125, 255, 255]]


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
def test_padding_is_black_and_does_not_count(tmp_path, photometric):
    """What stands outside the picture neither sets the range nor shines."""
    pixels = np.array([[60000, 100, 150, 200]], np.uint16)
    path = dicom(tmp_path / "a.dcm", pixels, photometric=photometric, PixelPaddingValue=60000)
    shown = decoded(encode_image(path))[0]
    assert shown[0] == 0
    assert sorted(shown[1:]) == [0, 128 if photometric == "MONOCHROME2" else 127, 255]


def test_a_colour_dicom_becomes_gray(tmp_path):
    """A secondary capture in RGB is sent as gray."""
    pixels = np.dstack([NOISE] * 3)
    path = dicom(tmp_path / "a.dcm", pixels, photometric="RGB", bits=8)
    np.testing.assert_array_equal(decoded(encode_image(path)), NOISE)


def test_nothing_of_the_dicom_header_leaves(tmp_path):
    """Neither name nor id nor birth date is in what is sent."""
    path = dicom(tmp_path / "a.dcm", NOISE.astype(np.uint16))
    header = (CANARY.encode(), b"CANARY-ID", b"19010203", b"1.2.3.4")
    assert all(secret in path.read_bytes() for secret in header)
    encoded = encode_image(path)
    assert not any(secret in encoded.data for secret in header)
    with Image.open(BytesIO(encoded.data)) as image:
        image.load()
        assert image.info == {}


def test_a_large_dicom_is_made_smaller(tmp_path):
    """DICOM obeys the same limit."""
    path = dicom(tmp_path / "a.dcm", np.tile(NOISE, (4, 4)).astype(np.uint16))
    assert decoded(encode_image(path, max_side=80)).shape == (48, 80)


def test_rle_is_decoded(tmp_path):
    """A compression that pydicom knows by itself gives the same pixels."""
    path = dicom(tmp_path / "a.dcm", NOISE, bits=8)
    plain = encode_image(path)
    dataset = pydicom.dcmread(path)
    dataset.compress(pydicom.uid.RLELossless)
    dataset.save_as(path)
    assert encode_image(path) == plain


def test_a_missing_decoder_is_one_sentence(tmp_path):
    """A compressed file that cannot be decoded here names its compression and the way out."""
    syntax = pydicom.uid.JPEGLosslessSV1
    if pydicom.pixels.get_decoder(syntax).is_available:
        pytest.skip("a decoder for lossless JPEG is installed")
    frames = pydicom.encaps.encapsulate([b"\xff\xd8\xff\xd9"])
    path = dicom(tmp_path / "a.dcm", NOISE.astype(np.uint16), syntax=syntax, PixelData=frames)
    with pytest.raises(BadInputError, match=r"compressed as JPEG Lossless.*pip install 'pylibjpeg"):
        encode_image(path)


def test_dicom_files_that_are_refused(tmp_path):
    """Several frames, a palette, a deflated file, no pixels and an impossible window."""
    pixels = NOISE.astype(np.uint16)
    film = dicom(tmp_path / "film.dcm", np.stack([pixels, pixels]), NumberOfFrames=2)
    palette = dicom(tmp_path / "palette.dcm", pixels, photometric="PALETTE COLOR")
    deflated = dicom(tmp_path / "deflated.dcm", pixels, syntax=pydicom.uid.DeflatedExplicitVRLittleEndian)
    window = dicom(tmp_path / "window.dcm", pixels, WindowCenter=10, WindowWidth=0)
    dataset = pydicom.dcmread(window)
    del dataset.PixelData
    dataset.save_as(tmp_path / "none.dcm")
    said = {film: "2 frames", palette: "palette", deflated: "inflate it", window: "cannot be applied"}
    for path, words in {**said, tmp_path / "none.dcm": "holds no pixels"}.items():
        with pytest.raises(BadInputError, match=words):
            encode_image(path)
