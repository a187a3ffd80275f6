"""An output that is a link, a pipe or a device stays one; writers side by side all succeed."""

import os
import stat
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from tempfile import TemporaryFile

import pytest

import writing_commands
from budgets import budget
from commands import tabon
from tabon._internal import atomic_files
from tabon._internal.atomic_files import replacing
from tabon.errors import BadInputError
from waiting import LIMIT


def write(path, data):
    """Write a file as the commands do."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def reading(pipe):
    """Read a FIFO in another process meanwhile; gives what waits for its end and returns its bytes."""
    with TemporaryFile() as kept, subprocess.Popen([which("cat"), pipe], stdout=kept) as reader:

        def result():
            reader.wait(timeout=LIMIT)
            kept.seek(0)
            return kept.read()

        try:
            yield result
        finally:
            reader.kill()


def names(folder):
    """Return what lies in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing"])
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path, there):
    """A chain of relative links is followed; a link that leads nowhere gets its file."""
    (tmp_path / "data").mkdir()
    target, link = tmp_path / "data" / "real", tmp_path / "out"
    if there:
        target.write_bytes(b"old")
    (tmp_path / "data" / "middle").symlink_to("real")
    link.symlink_to("data/middle")
    write(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "data" / "middle").is_symlink()
    assert target.read_bytes() == b"new"
    assert (names(tmp_path), names(tmp_path / "data")) == (["data", "out"], ["middle", "real"])


def test_a_link_that_leads_to_itself_is_refused(tmp_path):
    """A circle of links gives one sentence."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(BadInputError, match=r"cannot write .*; make room or choose another place"):
        write(tmp_path / "a", b"new")
    assert names(tmp_path) == ["a", "b"]


def test_a_folder_or_a_socket_is_refused(tmp_path):
    """What can be neither replaced nor written into is refused before any work, and stays."""
    import socket

    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
        for name in ("folder", "socket"):
            with pytest.raises(BadInputError, match=f"{name} is a folder, a disk or a socket; give the name"):
                write(tmp_path / name, b"new")
    assert names(tmp_path) == ["folder", "socket"]
    assert stat.S_ISSOCK((tmp_path / "socket").stat().st_mode)


@pytest.mark.parametrize("linked", [True, False], ids=["through a link", "by its name"])
def test_a_pipe_gets_all_bytes_and_stays(tmp_path, linked):
    """The reader of a FIFO gets what was written, also by a writer that seeks; nothing is renamed."""
    pipe, link, data = tmp_path / "pipe", tmp_path / "link", os.urandom(300_000)
    os.mkfifo(pipe)
    link.symlink_to("pipe")
    with reading(pipe) as result:
        with replacing(link if linked else pipe) as file:
            file.write(bytes(10))
            file.write(data[10:])
            assert file.tell() == len(data)
            file.seek(0)
            file.write(data[:10])
        assert result() == data
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert names(tmp_path) == ["link", "pipe"]


def test_a_failed_writer_lets_the_reader_of_a_pipe_go(tmp_path):
    """When the work fails, the pipe is closed without a byte."""
    os.mkfifo(tmp_path / "pipe")
    with reading(tmp_path / "pipe") as result:
        with pytest.raises(TypeError), replacing(tmp_path / "pipe") as file:
            file.writelines([b"half", "no bytes"])
        assert result() == b""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a device")
def test_a_device_stays_a_device(tmp_path):
    """A copy of the null device swallows the bytes and is still the null device."""
    null = tmp_path / "null"
    os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    write(null, b"new")
    assert stat.S_ISCHR(null.lstat().st_mode)
    assert names(tmp_path) == ["null"]


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_an_open_file_is_written_through(tmp_path, folder):
    """/dev/fd/N: a pipe gets the bytes, and a file opened to append keeps what it has."""
    if not Path(folder).is_dir():
        pytest.skip(f"there is no {folder} here")
    reader, writer = os.pipe()
    log = tmp_path / "log"
    log.write_bytes(b"old ")
    with log.open("ab") as opened:
        write(f"{folder}/{opened.fileno()}", b"new")
    write(f"{folder}/{writer}", b"piped")
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        assert stream.read() == b"piped"
    assert log.read_bytes() == b"old new"
    assert names(tmp_path) == ["log"]


WRITE_OUT = """
    import sys
    from tabon._internal.atomic_files import replacing
    with replacing(sys.argv[1]) as file:
        file.write(b"written")
    print("printed")
"""


def test_a_link_to_standard_output_is_written_through(tmp_path):
    """Behind a link to standard output, a pipe or a file gets the bytes, then what is printed."""
    (tmp_path / "link").symlink_to("/proc/self/fd/1")
    command = [sys.executable, "-c", textwrap.dedent(WRITE_OUT), tmp_path / "link"]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"writtenprinted\n"
    with (tmp_path / "log").open("wb") as log:
        log.write(b"old ")
        log.flush()
        subprocess.run(command, stdout=log, check=True)
    assert (tmp_path / "log").read_bytes() == b"old writtenprinted\n"
    assert (tmp_path / "link").is_symlink()


def test_an_output_that_standard_output_goes_to_as_well_is_whole(tmp_path):
    """`--out f > f`: the name gets the output; what is printed does not spoil it."""
    with (tmp_path / "f").open("wb") as out:
        command = [sys.executable, "-c", textwrap.dedent(WRITE_OUT), tmp_path / "f"]
        subprocess.run(command, stdout=out, check=True)
    assert (tmp_path / "f").read_bytes() == b"written"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """What the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    writing_commands.make_inputs(folder)
    return folder


@pytest.mark.parametrize("name", sorted(writing_commands.COMMANDS))
def test_every_command_follows_links(name, inputs, tmp_path):
    """Where outputs are links, the files that they lead to are replaced, with the same bytes as else."""
    plain, linked, away = (tmp_path / folder for folder in ("plain", "linked", "away"))
    for folder in (plain, linked, away):
        folder.mkdir()
    writing_commands.run(name, inputs, plain)
    expected = writing_commands.written(plain)
    for number, file in enumerate(sorted(expected)):
        (linked / file).parent.mkdir(parents=True, exist_ok=True)
        (linked / file).symlink_to(away / str(number))
        (away / str(number)).write_bytes(b"old")
    writing_commands.run(name, inputs, linked)
    assert writing_commands.written(linked) == expected
    assert all((linked / file).is_symlink() for file in expected)
    assert names(away) == sorted(map(str, range(len(expected))))


@pytest.mark.parametrize("name", sorted(set(writing_commands.COMMANDS) - writing_commands.SEVERAL_FILES))
def test_every_command_writes_into_a_pipe_or_refuses_it(name, inputs, tmp_path):
    """A FIFO in place of the output gets the same bytes; a bank, which must be mapped, is refused."""
    plain, piped = tmp_path / "plain", tmp_path / "piped"
    plain.mkdir()
    piped.mkdir()
    writing_commands.run(name, inputs, plain)
    [(file, expected)] = writing_commands.written(plain).items()
    os.mkfifo(piped / file)
    if name == "bank build":
        result = tabon(*writing_commands.arguments(name, inputs, piped))
        assert result.exit_code == 1
        assert "a bank cannot go to standard output, a pipe or a device" in result.output
    else:
        with reading(piped / file) as result:
            writing_commands.run(name, inputs, piped)
            assert result() == expected
    assert stat.S_ISFIFO((piped / file).lstat().st_mode)
    assert names(piped) == [file]


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    """Another writer may take a new file for a leftover until it is locked: that is noticed."""
    path, flock, taken = tmp_path / "b", atomic_files.fcntl.flock, []

    def other_first(file, how):
        if not taken:
            taken.append(True)
            atomic_files._remove_leftovers(path)
            assert names(tmp_path) == []
        flock(file, how)

    monkeypatch.setattr(atomic_files.fcntl, "flock", other_first)
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["b"]


WRITERS = """
    import sys
    from pathlib import Path
    from tabon._internal.atomic_files import replacing
    number, rounds, path = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    print("ready", flush=True)
    sys.stdin.readline()
    for round in range(rounds):
        with replacing(path) as file:
            file.write(b"%d" % number * 20_000)
"""


def test_writers_side_by_side_all_succeed(tmp_path):
    """Four processes write one file many times: no write fails, a reader sees whole files only."""
    path, rounds = tmp_path / "b.tabon", budget(150, 2000)
    command = [sys.executable, "-c", textwrap.dedent(WRITERS)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, str(number), str(rounds), path], **pipes) for number in range(4)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    path.write_bytes(b"0" * 20_000)
    for writer in writers:
        print(file=writer.stdin, flush=True)
    while any(writer.poll() is None for writer in writers):
        seen = path.read_bytes()
        assert seen == seen[:1] * 20_000
    errors = [writer.communicate()[1][-300:] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4, errors
    assert names(tmp_path) == ["b.tabon"]


@pytest.mark.parametrize("name", ["b[1].tabon", "*", "b?"])
def test_leftovers_are_found_by_the_letter(tmp_path, name):
    """Characters that mean more to a pattern: own leftovers go, those of others stay."""
    (tmp_path / f".{name}.dead.part").write_bytes(b"x")
    (tmp_path / ".b1.tabon.other.part").write_bytes(b"x")
    write(tmp_path / name, b"new")
    assert names(tmp_path) == sorted([".b1.tabon.other.part", name])
