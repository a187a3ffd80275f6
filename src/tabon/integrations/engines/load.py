"""From a URL to an engine."""

from collections.abc import Mapping
from types import MappingProxyType

from tabon._internal.registry import lookup
from tabon.integrations.engines.protocol import Engine

ENGINES: Mapping[str, str] = MappingProxyType(  # scheme -> a function from the whole URL to an engine
    {
        "local": "tabon.integrations.engines.local:open_local",
        "ray": "tabon.integrations.engines.ray_engine:open_ray",
    }
)


def open_engine(url: str) -> Engine:
    """Return the engine that a URL names, ready to work.

    `local` is this process. `ray://HOST:PORT` asks a Ray cluster from outside
    (Ray's client port, 10001 as a rule); `ray:ADDRESS`, such as `ray:auto` or
    `ray:10.0.0.1:6379`, joins one from a machine that is a node of it.

    >>> open_engine("local").slots
    1
    """
    engine: Engine = lookup("engine", ENGINES, url.partition(":")[0])(url)
    return engine
