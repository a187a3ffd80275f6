"""Ray as the engine: pieces are Ray tasks, and a piece that is lost with its node is done again elsewhere.

Each worker process keeps what it loaded (an encoder, a bank) for as long as the job lasts. A piece
that is done is fetched at once. A run that ends early cancels no piece: Ray may end the whole
process if a piece is done at that moment (ray-project/ray#54798, and still in 2.60).
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from socket import create_connection
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl

from tabon._internal.extras import require
from tabon.encoders import Encoder
from tabon.errors import BadInputError, EncoderError, EngineError, TabonError, TransportError
from tabon.integrations.engines.engine import Piece, Result, Shared, SpreadEncoder

REACH_SECONDS = 5.0
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"  # HTTP/2, which Ray's ports speak
NOT_RAY = b"HTTP/"  # the answer of a server that does not; one with TLS answers something else, or hangs up
RETRIES = 10  # of a piece whose worker or node died
AHEAD = 3  # pieces handed out for each one that is worked on
LOOK_SECONDS = 5.0
PATIENCE_SECONDS = 120.0  # without any node that could work


@dataclass(frozen=True, slots=True)
class RayAddress:
    """Where a cluster is, and what one piece of work takes of a node."""

    address: str  # as `ray.init` reads it
    cpus: float = 1.0
    gpus: float = 0.0

    @classmethod
    def of(cls, url: str) -> "RayAddress":
        """Read `ray://HOST:PORT` or `ray:ADDRESS`, with `?cpus=` and `?gpus=` of one piece.

        >>> RayAddress.of("ray:auto?cpus=4&gpus=1")
        RayAddress(address='auto', cpus=4.0, gpus=1.0)
        """
        place, _, options = url.partition("?")
        address = place if place.startswith("ray://") else place.partition(":")[2]
        try:
            asked = {name: float(value) for name, value in parse_qsl(options, strict_parsing=bool(options))}
            found = cls(address, **asked)
        except (TypeError, ValueError):
            raise BadInputError(
                f"the engine {url!r} has options that cannot be read; write ?cpus=N, ?gpus=N or both"
            ) from None
        if address != "auto" and found.host_and_port() is None:
            raise BadInputError(f"the engine {url!r} names no cluster; write ray://HOST:PORT or ray:auto")
        if not (found.cpus >= 0 and found.gpus >= 0 and found.cpus + found.gpus > 0):
            raise BadInputError(f"the engine {url!r} asks for nothing of a node; give cpus= or gpus= above 0")
        return found

    def host_and_port(self) -> tuple[str, int] | None:
        """Return where to knock; None where Ray has to find that out."""
        host, _, port = self.address.removeprefix("ray://").rpartition(":")
        return (host.strip("[]"), int(port)) if host and port.isdigit() else None

    def needs(self) -> str:
        """Say what one piece takes of a node."""
        return f"{self.cpus:g} CPUs" + (f" and {self.gpus:g} GPUs" if self.gpus else "")


@dataclass(frozen=True, slots=True)
class Refused:
    """A TabonError on its way from a worker."""

    kind: str
    message: str

    def raised(self) -> TabonError:
        """Return the error; those that stop one query only keep their class."""
        kinds = {cls.__name__: cls for cls in (EncoderError, TransportError, EngineError)}
        return kinds.get(self.kind, BadInputError)(self.message)


def carry_out(work: Callable[[Shared, Piece], Result], shared: Shared, piece: Piece) -> Result | Refused:
    """Do one piece on a worker."""
    try:
        return work(shared, piece)
    except TabonError as error:
        return Refused(type(error).__name__, str(error))


class RayEngine:
    """Does pieces of work on a Ray cluster."""

    def __init__(self, ray: ModuleType, address: RayAddress, *, ours: bool) -> None:
        """Keep an open connection; `ours` says whether to close it in the end."""
        self._ray, self._address, self._ours = ray, address, ours
        self._task = ray.remote(
            num_cpus=address.cpus, num_gpus=address.gpus, max_retries=RETRIES, retry_exceptions=False
        )(carry_out)

    @property
    def slots(self) -> int:
        """Return how many pieces the nodes that are alive can work on at once."""
        asked = {"CPU": self._address.cpus, "GPU": self._address.gpus}
        return sum(
            min(int(node["Resources"].get(kind, 0.0) // share) for kind, share in asked.items() if share)
            for node in self._ray.nodes()
            if node["Alive"]
        )

    def run(
        self, work: Callable[[Shared, Piece], Result], pieces: Iterable[Piece], *, shared: Shared
    ) -> Iterator[tuple[int, Result]]:
        """Yield each piece's number and what `work(shared, piece)` returned, as pieces are done."""
        todo = enumerate(pieces)
        waiting: dict[Any, int] = {}
        try:
            common = self._ray.put(shared)
            self._hand_out(work, common, todo, waiting)
            while waiting:
                done = self._first_done(list(waiting))
                result = self._ray.get(done)
                number = waiting.pop(done)
                del done
                if isinstance(result, Refused):
                    raise result.raised()
                self._hand_out(work, common, todo, waiting)
                yield number, result
        except (
            self._ray.exceptions.RayError,
            ConnectionError,
        ) as error:  # of the client
            cause = getattr(error, "cause", None)
            name = type(cause if isinstance(cause, Exception) else error).__name__
            raise EngineError(
                f"a piece of work failed on the Ray cluster {self._address.address} ({name}); see the logs "
                "of its workers, check that every node has this tabon and enough memory, and run the "
                "command again"
            ) from error

    def encoder(self, spec: str | Path) -> Encoder:
        """Return an encoder whose sentences are encoded by the cluster."""
        return SpreadEncoder(self, spec)

    def close(self) -> None:
        """Leave the cluster, if it was joined for this engine."""
        if self._ours:
            self._ray.shutdown()

    def _hand_out(
        self,
        work: Callable[..., object],
        common: object,
        todo: Iterator[tuple[int, Piece]],
        waiting: dict[Any, int],
    ) -> None:
        """Give the cluster enough pieces to stay busy, and no more than that."""
        room = AHEAD * max(1, self.slots) - len(waiting)
        for _ in range(room):
            number, piece = next(todo, (None, None))
            if number is None:
                return
            waiting[self._task.remote(work, common, piece)] = number

    def _first_done(self, waiting: list[Any]) -> Any:  # noqa: ANN401  # a reference of Ray's
        """Wait until a piece is done and fetched, as long as there is a node that could do it."""
        last_seen = time.monotonic()
        while True:
            done, _ = self._ray.wait(waiting, num_returns=1, timeout=LOOK_SECONDS)
            if done:
                return done[0]
            if self.slots:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > PATIENCE_SECONDS:
                raise EngineError(
                    f"the Ray cluster {self._address.address} has no node left with {self._address.needs()}; "
                    "start one and run the same command again: finished parts are kept"
                )


def open_ray(url: str) -> RayEngine:
    """Join a cluster, or say in one sentence why that cannot be."""
    address = RayAddress.of(url)
    ray = require("ray", extra="ray", feature="the Ray engine")
    _knock(address)
    joined = not ray.is_initialized()
    if joined:
        _join(ray, address)
    elif address.address not in ("auto", ray.get_runtime_context().gcs_address):
        raise EngineError(
            f"this process works with another Ray cluster than {address.address}; leave that one first"
        )
    engine = RayEngine(ray, address, ours=joined)
    if engine.slots == 0:
        engine.close()
        raise EngineError(
            f"no node of the Ray cluster {address.address} has {address.needs()}; add nodes or ask for less"
        )
    return engine


def _knock(address: RayAddress) -> None:
    """Refuse at once what does not answer: Ray itself would try for minutes, and may end the process."""
    place = address.host_and_port()
    if place is None:
        return
    try:
        with create_connection(place, timeout=REACH_SECONDS) as connection:
            connection.sendall(GREETING)
            answer = connection.recv(len(NOT_RAY))
    except OSError as error:
        raise EngineError(
            f"no Ray cluster answers at {address.address} ({error.strerror or 'no answer'}); start it with "
            "`ray start --head`, or check host and port"
        ) from error
    if answer == NOT_RAY:
        raise EngineError(f"what answers at {address.address} is not a Ray cluster; check host and port")


def _join(ray: ModuleType, address: RayAddress) -> None:
    """Connect, without a word on the standard streams."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address.address.startswith("ray://"):
        require("grpc", extra="ray", feature="Ray's client")
    else:
        quiet["configure_logging"] = False
    try:
        ray.init(address=address.address, **quiet)
    except (ConnectionError, OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        if address.address == "auto" and isinstance(error, ConnectionError):
            raise EngineError(
                "no Ray cluster runs on this machine; start one with `ray start --head`, or write "
                "ray://HOST:PORT"
            ) from error
        raise EngineError(
            f"the Ray cluster {address.address} could not be joined ({type(error).__name__}); check the "
            "address, that Ray and Python have the same versions there, and for ray:ADDRESS that this "
            "machine is a node of it"
        ) from error
