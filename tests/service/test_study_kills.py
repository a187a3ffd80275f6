"""kill -9 of a service that keeps answers: each acknowledged one is there, and none is there twice."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

pytest.importorskip("httpx", reason="the service's tests speak HTTP with httpx")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

import httpx

from budgets import budget, seeded
from service_server import http
from study_cases import answer_to, body_of, write_study
from study_server import killable
from tabon.study.answers import read_answers
from tabon.study.folder import read_key, read_study

KILLS = budget(6, 200)
CASES = 12  # of each reader; they are amended again and again


class Window:
    """A window of a reader: it answers case after case, and sends again what was not acknowledged."""

    def __init__(self, reader, token, readings):
        self.reader, self.readings = reader, readings
        self.headers = {"authorization": f"Bearer {token}"}
        self.last = {}  # by reading: the answer that was acknowledged last
        self.waiting = None  # what was sent and not acknowledged
        self.acknowledged = 0

    def work(self, address, rng, ended, counted):
        """Answer until the service is gone."""
        with http(headers=self.headers) as client:
            while not ended.is_set():
                if self.waiting is None:
                    reading = rng.choice(self.readings)
                    after = self.last.get(reading)
                    values = rng.choice([(1, 2), (2, 1), (1, 1)])
                    key = None if after is None else after.key
                    self.waiting = answer_to(reading, values, after=key, comment="x" * rng.randrange(3000))
                try:
                    said = client.post(f"{address}/v1/study/answers", json=body_of(self.waiting))
                except httpx.TransportError:
                    return
                assert said.status_code == 200, said.text
                self.last[self.waiting.reading] = self.waiting
                self.waiting = None
                self.acknowledged += 1
                counted()


def check(folder, windows):
    """Compare the journal with what was acknowledged; one answer of a window may be there unacknowledged."""
    study = read_study(folder)
    found = read_answers(folder, study)
    lines = (folder / "answers.jsonl").read_bytes().splitlines()
    unsure = sum(window.waiting is not None for window in windows)
    acknowledged = sum(window.acknowledged for window in windows)
    assert acknowledged <= len(lines) <= acknowledged + unsure + 1  # and a line that was cut off
    for window in windows:
        kept = {reading: record.answer() for reading, record in found.last(window.reader).items()}
        expected = dict(window.last)
        sent = window.waiting
        if sent is not None and kept.get(sent.reading) == sent:
            expected[sent.reading] = sent  # it was on disk before the service could say so
        assert kept == expected


@pytest.mark.heavy
def test_kills_lose_no_acknowledged_answer(tmp_path):
    """Killed at any moment between two acknowledgements, while two readers answer at once."""
    folder, rng = tmp_path / "study", seeded("killed studies")
    _, tokens = write_study(folder, cases=CASES, repeat=0)
    readings = read_key(folder, read_study(folder)).readings
    windows = [Window(name, token, [one.id for one in readings[name]]) for name, token in tokens.items()]
    with killable(folder, tmp_path / "log") as service, ThreadPoolExecutor(len(windows)) as pool:
        for _ in range(KILLS):
            ended, enough, wanted = Event(), Event(), rng.randint(1, 12)
            start = sum(window.acknowledged for window in windows)

            def counted(start=start, wanted=wanted, enough=enough):
                if sum(window.acknowledged for window in windows) - start >= wanted:
                    enough.set()

            working = [pool.submit(window.work, service.address, rng, ended, counted) for window in windows]
            assert enough.wait(120)
            service.kill()
            ended.set()
            for one in working:
                one.result()
            check(folder, windows)
            service.start()
        assert all(window.acknowledged >= KILLS // 4 for window in windows)
    assert "xxx" not in (tmp_path / "log").read_text()


def test_a_service_that_is_killed_says_what_it_dropped(tmp_path):
    """A line that was half written is cut off at the next start, which is said without its text."""
    folder = tmp_path / "study"
    _, tokens = write_study(folder, cases=2, repeat=0)
    [first, second] = [one.id for one in read_key(folder, read_study(folder)).readings["ann"]]
    with killable(folder, tmp_path / "log") as service:
        with http(headers={"authorization": f"Bearer {tokens['ann']}"}) as client:
            sent = answer_to(first, (1, 2), comment="Quokka")
            assert client.post(f"{service.address}/v1/study/answers", json=body_of(sent)).status_code == 200
        service.kill()
        path = folder / "answers.jsonl"
        path.write_bytes(path.read_bytes() * 2)
        path.write_bytes(path.read_bytes()[:-20])
        service.start()
        log = (tmp_path / "log").read_text()
        assert "the last line of the journal was cut off, and was never acknowledged; it is dropped" in log
        assert "2 readers, 1 of 4 readings answered" in log
        with http(headers={"authorization": f"Bearer {tokens['ann']}"}) as client:
            sent = answer_to(second, (1, 2))
            assert client.post(f"{service.address}/v1/study/answers", json=body_of(sent)).status_code == 200
    assert len(read_answers(folder, read_study(folder)).last("ann")) == 2
    assert "Quokka" not in log
