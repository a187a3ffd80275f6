"""Files of arrays taken apart and put together again, with right sums, for tests that craft odd ones."""

import json
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass
class Crafted:
    """A bank or index file in pieces: what stands in its header, and the bytes of each part by number."""

    magic: bytes
    header: dict
    blobs: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, data):
        """Take a file apart."""
        end = 16 + int.from_bytes(data[8:16], "little")
        made, at = cls(data[:8], json.loads(data[16:end])), end + 32
        for entry in made.header["blobs"]:
            made.blobs.append(data[at : at + entry["length"]])
            at += entry["length"]
        return made

    def number(self, name):
        """Return the number of a part."""
        return [entry["name"] for entry in self.header["blobs"]].index(name)

    def put(self, name, array):
        """Replace a part's array; type, shape, length and sum follow."""
        number, data = self.number(name), array.tobytes()
        self.blobs[number] = data + bytes(-len(data) % 64)
        self.header["blobs"][number] |= {"dtype": array.dtype.str, "shape": list(array.shape)}
        self.sum_up(number)

    def sum_up(self, number):
        """Let the header speak of a part's bytes as they are."""
        blob = self.blobs[number]
        self.header["blobs"][number] |= {"length": len(blob), "sha256": sha256(blob).hexdigest()}

    def data(self, room=0):
        """Return the file's bytes, with right sums; blanks fill the header up to some length."""
        header = json.dumps(self.header).encode()
        header += b" " * max(-(len(header) + 48) % 64, room - len(header))
        head = self.magic + len(header).to_bytes(8, "little") + header
        return b"".join([head, sha256(head).digest(), *self.blobs])
