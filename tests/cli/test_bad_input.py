"""Bad input gets one clear sentence with the way out, exit status 1, and nothing half-written."""

import json
import os
import re
from dataclasses import replace

import numpy as np
import pytest

from commands import bank_file, tabon
from memory import peak
from tabon import Report, Selector, TabonError, TransitionBank
from tabon._internal import atomic_files
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders.hashing import HashingEncoder
from tabon.errors import BadInputError, EncoderError, UnknownNameError
from tabon.selectors.setup import in_batches
from tabon.text.records import BadLine, query_from_record, transition_from_record

SETTINGS = SimulationSettings(patients=60)
TRANSITIONS = list(simulate_transitions(SETTINGS, "train"))
QUERIES = list(simulate_queries(SETTINGS, "test"))
GOOD_TRANSITION, GOOD_QUERY = json.dumps(TRANSITIONS[0]).encode(), json.dumps(QUERIES[0]).encode()


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Return a bank file."""
    return bank_file(tmp_path_factory.mktemp("bank"), TRANSITIONS)


@pytest.fixture
def out(tmp_path):
    """Return a file that must survive a failure."""
    path = tmp_path / "out"
    path.write_text("precious\n")
    return path


def build(stdin, out):
    """Build a bank from standard input."""
    return tabon("bank", "build", "-", "--out", out, "--encoder", "hashing", stdin=stdin)


def select(stdin, bank, *options):
    """Select for the queries on standard input."""
    return tabon("select", "-", "--bank", bank, *options, stdin=stdin)


def sentence(result):
    """Return the one sentence that a refused command says."""
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    said = re.fullmatch(r"Error: ([^\n]+)\n", result.stderr)
    assert said, result.stderr
    return said[1]


def assert_untouched(out):
    """Check that the old file is as it was and alone."""
    assert out.read_text() == "precious\n"
    assert [path.name for path in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("stdin", [b"", b"\n", b"  \n\t\r\n\n"], ids=["empty", "newline", "blanks"])
def test_a_file_without_records_is_refused(stdin, bank, out):
    """An empty file and a file of blank lines say what is missing, for both commands."""
    assert "a bank needs at least one transition; " in sentence(build(stdin, out))
    assert "the file holds no queries; " in sentence(select(stdin, bank, "--out", out))
    assert_untouched(out)


BAD_LINES = {
    "cut": (b'{"id": "x", "prior": "Lungs', "not JSON at column "),
    "bare words": (b"The lungs are clear.", "not JSON at column 1"),
    "not an object": (b'["The lungs are clear."]', "a list instead of an object"),
    "null": (b"null", "null instead of an object"),
    "latin-1": (b'{"id": "x", "prior": "Herzgr\xf6\xdfe"}', "not UTF-8 at byte 28"),
    "deep": (b'{"id":"x","a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deeply"),
    "deep enough": (
        GOOD_QUERY[:-1] + b',"current":"","a":' + b"[" * 300 + b"]" * 300 + b"}",
        "nested more than",
    ),
    "digits": (b'{"id":' + b"1" * 9999 + b"}", "a number has too many digits"),
    "no id": (b'{"prior": "a", "current": "b", "candidates": []}', "no key 'id'"),
    "no prior": (b'{"id": "x", "current": "b", "candidates": []}', "no key 'prior'"),
    "id is null": (b'{"id": null, "prior": "a", "current": "b", "candidates": []}', "'id' is null"),
    "id is a list": (b'{"id": [], "prior": "a", "current": "b", "candidates": []}', "'id' is a list"),
    "prior is a number": (
        b'{"id": 1, "prior": 3, "current": "b", "candidates": []}',
        "'prior': a report is int",
    ),
    "findings is a list": (
        b'{"id": 1, "prior": {"findings": ["The lungs"]}, "current": "b", "candidates": []}',
        "'prior': 'findings' of a report is list",
    ),
    "report without a section": (
        b'{"id": 1, "prior": {"The lungs": 1}, "current": "b", "candidates": []}',
        "'prior': a report object has neither",
    ),
    "patient is an object": (
        b'{"id": 1, "patient": {}, "prior": "a", "current": "b", "candidates": []}',
        "'patient' is an object",
    ),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_transition_is_named_by_its_line(name, out):
    """The first bad line stops the build with its number, the reason and the way out."""
    line, reason = BAD_LINES[name]
    said = sentence(build(b"\n".join([GOOD_TRANSITION, b"", line, b"never read"]), out))
    assert said.startswith(f"standard input line 3: {reason}")
    assert "; " in said
    assert "ungs" not in said
    assert_untouched(out)


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_query_is_named_by_its_line_and_the_others_are_answered(name, bank):
    """A bad line is reported with its number and its id where it has one; the rest is answered."""
    line, reason = BAD_LINES[name]
    result = select(b"\n".join([GOOD_QUERY, b"", line, json.dumps({**QUERIES[1], "id": "z"}).encode()]), bank)
    assert result.exit_code == 1
    assert [json.loads(text)["id"] for text in result.stdout.splitlines()] == [QUERIES[0]["id"], "z"]
    reported, last = result.stderr.splitlines()
    assert re.match(rf"line 3(, query '[^']+')?: {re.escape(reason)}", reported)
    assert "; " in reported
    assert "ungs" not in result.stderr
    assert last.startswith("Error: 1 of the queries")


def test_a_file_in_utf_16_is_refused(bank, out):
    """Each line of a UTF-16 file is refused with advice to save it as UTF-8, or as no JSON."""
    text = (json.dumps(TRANSITIONS[0]) + "\n" + json.dumps(TRANSITIONS[1])).encode("utf-16")
    assert sentence(build(text, out)).startswith("standard input line 1: not ")
    result = select(text, bank)
    assert (result.exit_code, result.stdout) == (1, "")
    assert_untouched(out)


def test_a_transition_needs_its_current_report_and_a_query_its_drafts(bank, out):
    """The key that only one of the two contracts has is asked for by name."""
    said = sentence(build(b'{"id": 1, "prior": "a"}', out))
    assert "no key 'current'; add it" in said
    result = select(b'{"id": 1, "prior": "a"}', bank)
    assert "line 1, query '1': no key 'candidates'; add it" in result.stderr


def test_ids_that_occur_twice_are_refused(bank, out):
    """Rows and answers are found by their id: a build is refused, a second query not answered."""
    said = sentence(build(b"\n".join([GOOD_TRANSITION] * 3), out))
    assert f"transition id {TRANSITIONS[0]['id']!r} occurs 3 times; " in said
    assert_untouched(out)
    result = select(b"\n".join([GOOD_QUERY] * 2), bank)
    assert result.stderr.startswith(f"line 2, query {QUERIES[0]['id']!r}: the id occurred before; ")
    assert len(result.stdout.splitlines()) == 1


ABSTENTIONS = {
    "empty prior": ({"prior": {"findings": "", "impression": " \n"}}, "empty-prior"),
    "placeholder prior": ({"prior": "FINDINGS: None. IMPRESSION: N/A"}, "empty-prior"),
    "null prior": ({"prior": None}, "empty-prior"),
    "no priors": ({"prior": []}, "empty-prior"),
    "no drafts": ({"candidates": []}, "no-drafts"),
    "empty drafts": ({"candidates": ["", {"text": "  "}, {"findings": None}, None]}, "all-drafts-empty"),
    "no common section": (
        {"prior": {"findings": "Clear."}, "candidates": [{"impression": "Normal."}]},
        "nothing-to-compare",
    ),
}


@pytest.mark.parametrize("name", ABSTENTIONS)
def test_where_nothing_can_be_compared_nothing_is_chosen(name, bank):
    """The query is named with the reason and the way out; its record says why; the next is answered."""
    change, reason = ABSTENTIONS[name]
    odd = {**QUERIES[0], "id": "odd", **change}
    result = select("\n".join(map(json.dumps, [odd, QUERIES[1]])).encode(), bank)
    first, second = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 1
    assert (first["selected"], first["abstained"]) == (None, reason)
    assert second["selected"] is not None
    assert re.match(r"query 'odd': [^\n]+; [^\n]+\nError: 1 of the queries", result.stderr)


@pytest.mark.parametrize("length", [20_001, 40_000])
@pytest.mark.parametrize("distance", ["novelty", "cost-ot"])
def test_very_long_sections_are_answered_and_flagged(length, distance, bank):
    """A runaway draft does not stop the command; its section is flagged."""
    many = " ".join(f"Opacity number {i} in the left lung is unchanged." for i in range(length // 40))
    endless = "opacity " * (length // 8 + 1)
    query = {
        **QUERIES[0],
        "candidates": [{"findings": many, "impression": endless}, QUERIES[0]["candidates"][0]],
    }
    result = select(json.dumps(query).encode(), bank, "--distance", distance)
    [record] = map(json.loads, result.stdout.splitlines())
    assert (result.exit_code, result.stderr) == (0, "")
    assert {"long-section:findings:0", "long-section:impression:0"} <= set(record["flags"])
    assert not {"long-section:findings:1", "long-section:impression:1"} & set(record["flags"])


TOO_LONG = {
    "characters": ("opacity " * 10_000, "findings has 79,999 characters, more than 50,000; shorten it"),
    "sentences": ("Clear. " * 5_000, "findings has 5,000 sentences, more than 1,000; shorten it"),
}


@pytest.mark.parametrize("name", TOO_LONG)
@pytest.mark.parametrize("place", ["draft 1", "'prior'"])
def test_a_section_beyond_all_bounds_is_refused_by_id_and_the_others_are_answered(name, place, bank):
    """One runaway report costs its own query, not the file and not the machine's memory."""
    text, reason = TOO_LONG[name]
    change = {"prior": {"findings": text}} if place == "'prior'" else {"candidates": ["Clear.", text]}
    odd = {**QUERIES[0], "id": "odd", **change}
    result = select("\n".join(map(json.dumps, [odd, *QUERIES[1:4]])).encode(), bank)
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [q["id"] for q in QUERIES[1:4]]
    assert result.stderr.splitlines()[0] == f"line 1, query 'odd': {place}: {reason}"
    assert result.exit_code == 1


@pytest.mark.parametrize("name", TOO_LONG)
@pytest.mark.parametrize("place", ["prior", "current"])
def test_a_transition_beyond_all_bounds_is_named_by_its_line(name, place, out):
    """What no query may hold goes into no bank either."""
    text, reason = TOO_LONG[name]
    record = {**TRANSITIONS[1], place: {"findings": text}}
    said = sentence(build(b"\n".join([GOOD_TRANSITION, json.dumps(record).encode()]), out))
    assert said == f"standard input line 2: '{place}': {reason}"
    assert_untouched(out)


@pytest.mark.parametrize("name", TOO_LONG)
def test_python_callers_meet_the_same_bounds(name, loaded):
    """A report that was made by hand is refused where it would be compared."""
    text, reason = TOO_LONG[name]
    with pytest.raises(BadInputError, match=reason):
        Selector(loaded).select("Clear lungs.", [Report("Clear."), Report(text)])


def test_a_reference_beyond_all_bounds_is_refused(tmp_path):
    """A metric would compare every word of it with every draft."""
    text, reason = TOO_LONG["characters"]
    line = json.dumps({**QUERIES[0], "id": "odd", "reference": text}).encode()
    options = ["--metrics", "rouge", "--no-measurements", "--out", str(tmp_path / "out")]
    result = tabon("evaluate", "-", *options, stdin=line)
    assert sentence(result) == f"standard input, query 'odd': 'reference': {reason}"


def test_more_drafts_than_anybody_asks_for_are_refused(bank):
    """The number of drafts of one query has a bound too."""
    result = select(json.dumps({**QUERIES[0], "candidates": ["Clear."] * 257}).encode(), bank)
    assert f"query {QUERIES[0]['id']!r}: 'candidates' holds 257 drafts; give at most 256" in result.stderr


@pytest.mark.parametrize("distance", ["novelty", "cost-ot"])
def test_the_longest_sections_take_little_memory(distance, loaded):
    """A thousand sentences against a thousand others stay far below a gigabyte."""
    prior, draft = (
        Report(" ".join(f"{word} number {i} is seen." for i in range(1_000))) for word in ("Nodule", "Mass")
    )
    assert peak(lambda: Selector(loaded, distance=distance).select(prior, [draft])) < 300e6


def test_long_reports_make_batches_shorter():
    """What is in memory at once is bounded by its text, not only by the number of queries."""
    record = {"id": "q", "prior": "Clear.", "candidates": [{"findings": "opacity " * 6_000}] * 30}
    queries = [replace(query_from_record(record), id=str(number)) for number in range(5)]
    assert [len(batch) for batch in in_batches(iter(queries), 4)] == [2, 2, 1]
    assert [len(batch) for batch in in_batches(iter([BadLine(1, "")] * 5), 4)] == [4, 1]


def test_a_very_long_transition_fits_into_a_bank(tmp_path):
    """A section of 20,000 characters is a transition like any other."""
    path = tmp_path / "bank.tabon"
    long = " ".join(f"Nodule {i} in the lung is stable." for i in range(700))
    record = {**TRANSITIONS[0], "prior": {"findings": long}, "current": {"findings": "Clear. " + long}}
    assert build(json.dumps(record).encode(), path).exit_code == 0
    assert len(TransitionBank.load(path)) == 1


ALPHABETS = {
    "Greek": "Πνεύμονες καθαροί. Δεν υπάρχει πνευμοθώρακας.",
    "Russian": "Лёгкие чистые. Выпота нет.",
    "Arabic": "الرئتان صافيتان. لا يوجد انصباب.",
    "Chinese": "双肺清晰。未见胸腔积液。",
    "Hindi": "फेफड़े साफ हैं। कोई बहाव नहीं।",
    "emoji": "🫁 clear. 🦴 intact 👩🏽‍⚕️.",
    "combining": "Cafe\u0301 au lait\u200b sign. A\u0300\u0301\u0302\u0303.",
    "controls": "Clear\x00 lungs.\x1b[31m Red\u2028 line.",
    "surrogates": "Clear \ud800 lungs. \udfff Normal.",
}


@pytest.mark.parametrize("name", ALPHABETS)
def test_other_alphabets_are_answered(name, bank, tmp_path):
    """Any Unicode text, lone surrogates included, goes into banks and through selection."""
    text = ALPHABETS[name]
    query = {
        **QUERIES[0],
        "prior": {"findings": text},
        "candidates": [text, "Clear.", {"findings": text + text}],
    }
    result = select(json.dumps(query).encode(), bank)
    assert (result.exit_code, result.stderr) == (0, "")
    record = {**TRANSITIONS[0], "prior": "Clear lungs.", "current": text, "site": text}
    path = tmp_path / "bank.tabon"
    assert build(json.dumps(record).encode(), path).exit_code == 0
    loaded = TransitionBank.load(path)
    assert loaded.provenance[0]["site"] == text
    assert Selector(loaded).select("Clear lungs.", [text]).selected == 0


def test_raw_surrogate_bytes_are_answered_too(bank):
    """A surrogate written as bytes, which strict UTF-8 does not allow, is no crash."""
    line = (
        json.dumps({**QUERIES[0], "candidates": ["Clear @ lungs."]}).encode().replace(b"@", b"\xed\xa0\x80")
    )
    assert select(line, bank).exit_code in {0, 1}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["-k", "0"], "k = 0 neighbours were asked for; give 1 or more"),
        (["-k", "-3"], "k = -3 neighbours were asked for; give 1 or more"),
        (["--aggregate", "knn", "-k", "100000"], "k = 100000 neighbours were asked for, the bank has "),
        (["--distance", "noveltey"], "unknown distance 'noveltey'. Did you mean 'novelty'? Known: "),
        (["--distance", "cost_ot"], "unknown distance 'cost_ot'. Did you mean 'cost-ot'? Known: "),
        (["--aggregate", "knnn"], "unknown aggregation 'knnn'. Did you mean 'knn'? Known: "),
        (["--zero", "farest"], "unknown zero policy 'farest'. Did you mean 'farthest'? Known: "),
        (["--encoder", "hashin"], "unknown encoder 'hashin'. Did you mean 'hashing'? Known: "),
        (["--encoder", "zzz"], "unknown encoder 'zzz'. Known: "),
        (["--distance", ""], "unknown distance ''. Known: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_settings_that_do_not_fit_are_refused(options, reason, bank, out):
    """A wrong number or name is answered with the right ones before any query is read."""
    assert sentence(select(GOOD_QUERY, bank, "--out", out, *options)).startswith(reason)
    assert_untouched(out)


def test_min_takes_one_neighbour_however_many_are_asked_for(bank):
    """`-k` belongs to knn; with min a k beyond the bank is no error and changes no distance."""
    few = json.loads(select(GOOD_QUERY, bank, "-k", 1).stdout)
    many = json.loads(select(GOOD_QUERY, bank, "-k", 100_000).stdout)
    assert few["total_distances"] == many["total_distances"]


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "text", "below a file"])
def test_what_is_not_a_bank_is_refused(kind, tmp_path):
    """A bank path that leads nowhere or elsewhere is named, with the way out."""
    path = tmp_path / "bank"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(b"" if kind == "empty" else b"The lungs are clear.\n" * 40)
    said = sentence(select(GOOD_QUERY, path / "bank" if kind == "below a file" else path))
    assert str(path) in said
    assert "; " in said
    assert "ungs" not in said


def test_an_output_below_a_file_is_refused(bank, out):
    """Where the folder of --out is a file, the sentence names the place; the file stays."""
    for result in (build(GOOD_TRANSITION, out / "x"), select(GOOD_QUERY, bank, "--out", out / "x")):
        assert sentence(result).startswith(f"cannot write {out / 'x'} (")
        assert_untouched(out)


def test_an_output_in_a_read_only_folder_is_refused(bank, out, monkeypatch):
    """Where the folder may not be written, the sentence names the place."""

    def forbidden(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(atomic_files, "NamedTemporaryFile", forbidden)  # root may write everywhere
    for result in (build(GOOD_TRANSITION, out), select(GOOD_QUERY, bank, "--out", out)):
        assert sentence(result).startswith(f"cannot write {out} (Permission denied); ")
        assert_untouched(out)


def test_a_disk_that_fills_up_leaves_the_old_file(bank, out, monkeypatch):
    """When the sync of the new file fails, the old one stays and nothing lies beside it."""

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for result in (build(GOOD_TRANSITION, out), select(GOOD_QUERY, bank, "--out", out)):
        assert sentence(result) == (
            f"cannot write {out} (No space left on device); make room or choose another place"
        )
        assert_untouched(out)


@pytest.mark.parametrize("command", ["build", "select"])
def test_a_store_that_is_no_store_is_refused(command, bank, tmp_path):
    """A sentence store that cannot be used is named, with the way out, and left as it was."""
    store = tmp_path / "store.sqlite"
    store.write_bytes(b"The lungs are clear. " * 99)
    arguments = {
        "build": ["bank", "build", "-", "--out", tmp_path / "b"],
        "select": ["select", "-", "--bank", bank],
    }
    words = [*arguments[command], "--encoder", "hashing", "--store", store]
    stdin = GOOD_TRANSITION if command == "build" else GOOD_QUERY
    said = sentence(tabon(*words, stdin=stdin))
    assert f"the sentence store {store} cannot be used" in said
    assert store.read_bytes() == b"The lungs are clear. " * 99


class Spoiled:
    """An encoder whose answers for some sentences are spoiled."""

    fingerprint = HashingEncoder.fingerprint

    def __init__(self, spoil):
        """Keep what is done to the rows."""
        self._spoil = spoil

    def encode(self, sentences):
        """Return the test encoder's rows, spoiled."""
        return self._spoil(HashingEncoder().encode(sentences))


class Bare(Spoiled):
    """The same without a fingerprint, as a user's own object has none."""

    fingerprint = property()  # hides the one above: asking for it raises AttributeError


SPOILS = {
    "nan": (lambda rows: rows * np.float32("nan"), "NaN or infinity"),
    "one nan": (lambda rows: np.where(np.arange(rows.shape[1]) == 3, np.nan, rows), "NaN or infinity"),
    "zeros": (lambda rows: rows * 0, "norm 0"),
    "flat": (lambda rows: rows[0], "."),
    "too few rows": (lambda rows: rows[:-1], "one row"),
    "too many rows": (lambda rows: np.concatenate([rows, rows]), "one row"),
    "nothing": (lambda _: None, "."),
}


@pytest.mark.parametrize("name", SPOILS)
@pytest.mark.parametrize("kind", [Spoiled, Bare])
def test_nonsense_from_an_encoder_is_refused(kind, name):
    """NaN, zero rows and wrong shapes are an EncoderError that quotes no sentence."""
    spoil, reason = SPOILS[name]
    transitions = [transition_from_record(record) for record in TRANSITIONS[:3]]
    with pytest.raises(EncoderError, match=reason) as caught:
        TransitionBank.build(transitions, encoder=kind(spoil))
    words = set(re.findall(r"[a-z]{5,}", json.dumps([record["prior"] for record in TRANSITIONS[:3]]).lower()))
    assert not words & set(re.findall(r"[a-z]+", str(caught.value).lower()))


def test_an_encoder_of_another_width_than_it_says_is_refused():
    """A dimension that differs from the fingerprint's is refused by both shapes."""
    with pytest.raises(EncoderError, match=r"\(1, 255\).*expected \(1, 256\)"):
        TransitionBank.build(
            [transition_from_record({"id": 1, "prior": "Clear.", "current": "Clear."})],
            encoder=Spoiled(lambda rows: rows[:, 1:]),
        )


def test_rows_that_are_not_unit_are_refused():
    """An encoder with a fingerprint must return unit rows."""
    with pytest.raises(EncoderError, match="norm 2"):
        TransitionBank.build(
            map(transition_from_record, TRANSITIONS[:3]), encoder=Spoiled(lambda rows: rows * 2)
        )


@pytest.fixture(scope="module")
def loaded(bank):
    """Return the bank in memory."""
    return TransitionBank.load(bank)


def test_the_python_interface_raises_what_the_command_says(loaded):
    """Unknown names and numbers that do not fit are TabonErrors, and also what Python would raise."""
    with pytest.raises(UnknownNameError, match="Did you mean 'mean-shift'") as caught:
        Selector(loaded, distance="mean_shift")
    assert isinstance(caught.value, LookupError | TabonError)
    for number in (0, -1):
        with pytest.raises(BadInputError, match="give 1 or more"):
            Selector(loaded, num_neighbours=number)
    with pytest.raises(ValueError, match="lower -k or build a larger bank"):
        Selector(loaded, aggregate="knn", num_neighbours=len(loaded) + 1)
    for value in (3, None, ["a"]):
        with pytest.raises(BadInputError, match="a report is "):
            Selector(loaded).select("Clear lungs.", [value])


def test_the_python_interface_abstains_with_a_reason(loaded):
    """What cannot be answered comes back as a selection that says why."""
    selector = Selector(loaded)
    assert selector.select("", ["Clear."]).abstained == "empty-prior"
    assert selector.select("Clear.", []).abstained == "no-drafts"
    assert selector.select("Clear.", ["", Report()]).abstained == "all-drafts-empty"
    assert selector.select_many([]) == []


def test_a_bank_of_nothing_is_refused():
    """A bank needs a transition."""
    with pytest.raises(BadInputError, match="at least one transition"):
        TransitionBank.build([], encoder="hashing")


@pytest.mark.parametrize("section", ["findings", "impression"])
def test_a_bank_with_one_section_answers_in_that_section(section, tmp_path):
    """Where the bank lacks a section it is left out and flagged, for files and drafts alike."""
    path = tmp_path / "bank.tabon"
    records = [
        {
            **record,
            "prior": {section: record["prior"][section]},
            "current": {section: record["current"][section]},
        }
        for record in TRANSITIONS
    ]
    assert build("\n".join(map(json.dumps, records)).encode(), path).exit_code == 0
    result = select(GOOD_QUERY, path)
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert list(record["section_distances"]) == [section]
    assert any(flag.startswith("bank-lacks:") for flag in record["flags"])


@pytest.mark.parametrize("spoil", [lambda rows: rows * np.inf, lambda rows: rows.astype(float) * 1e300])
def test_infinity_from_an_encoder_is_refused(spoil):
    """Infinite and overflowing rows are an EncoderError, not a warning from numpy."""
    with pytest.raises(EncoderError, match="NaN or infinity"):
        TransitionBank.build(
            map(transition_from_record, TRANSITIONS[:3]), encoder=Bare(lambda rows: spoil(np.abs(rows) + 1))
        )


@pytest.mark.parametrize("kind", [Spoiled, Bare])
@pytest.mark.parametrize(
    "answer", [["The lungs"], [[1.0, 2.0], [3.0]], [[object()]]], ids=["text", "ragged", "object"]
)
def test_an_encoder_that_returns_no_numbers_is_refused(kind, answer):
    """Text, ragged rows and objects are an EncoderError that quotes nothing."""
    with pytest.raises(EncoderError) as caught:
        TransitionBank.build(map(transition_from_record, TRANSITIONS[:3]), encoder=kind(lambda _: answer))
    assert "lungs" not in str(caught.value)


@pytest.mark.parametrize("name", ["my model/v 1", "-/-"])
def test_a_name_that_the_hub_cannot_have_is_refused(name, out):
    """An encoder name that is no Hub name is one sentence."""
    sentence(tabon("bank", "build", "-", "--out", out, "--encoder", name, stdin=GOOD_TRANSITION))
    assert_untouched(out)


def test_one_text_is_not_a_list_of_drafts(loaded):
    """A bare string as candidates would be drafts of one letter each, so it is refused."""
    with pytest.raises(BadInputError):
        Selector(loaded).select("Clear lungs.", "New effusion.")


def test_a_prior_that_is_very_long_is_flagged_too(loaded):
    """Not only drafts: a prior section beyond 20,000 characters is flagged."""
    flags = Selector(loaded).select("The lungs are clear again. " * 800, ["New effusion."]).flags
    assert any((flag.kind, flag.section) == ("long-section", "findings") for flag in flags)


def test_a_bank_without_a_single_pair_of_sections_is_refused():
    """Transitions that share no section with their prior make no bank."""
    record = {"id": 1, "prior": {"findings": "Clear."}, "current": {"impression": "Normal."}}
    with pytest.raises(BadInputError):
        TransitionBank.build([transition_from_record(record)], encoder="hashing")
