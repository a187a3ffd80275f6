"""Server-sent events out of bytes, however they are cut."""

from collections.abc import Iterator


class EventReader:
    r"""Puts events together from portions of bytes.

    >>> reader = EventReader()
    >>> list(reader.feed(b": hello\n\nda")), list(reader.feed(b"ta: 1\r\n\r\ndata: 2"))
    ([], [b'1'])
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._parts: list[bytes] = []  # of the line that is not whole yet
        self._data: list[bytes] = []
        self._after_cr = False

    def feed(self, portion: bytes) -> Iterator[bytes]:
        """Yield the data of each event that a portion completes; an unfinished last one never comes."""
        for line in self._lines(portion):
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data = []

    def _lines(self, portion: bytes) -> Iterator[bytes]:
        """Yield the lines that end here, in LF, CR LF or CR."""
        if not portion:
            return
        if self._after_cr and portion.startswith(b"\n"):
            portion = portion[1:]
        self._after_cr = portion.endswith(b"\r")
        first, *others = portion.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._parts.append(first)
        for line in others:
            yield b"".join(self._parts)
            self._parts = [line]
