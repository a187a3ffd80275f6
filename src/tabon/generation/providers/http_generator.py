"""What every model behind an official client has in common."""

from collections.abc import Callable, Mapping
from typing import Any

from tabon.generation.protocol import Answer, Request
from tabon.generation.providers.failures import (
    Provider,
    ask,
    check_address,
    check_key,
    http_client,
    source_of,
)


class HttpGenerator:
    """A model that an official client asks over HTTP; a subclass makes the client and sends."""

    def __init__(
        self,
        provider: Provider,
        read: Callable[[Any], Mapping[str, Any]],
        *,
        api_key: str,
        extra: str,
        own_address: str | None = None,
    ) -> None:
        """Check the address and the key, and make the HTTP client; `read` is as in `ask`.

        At the provider's own address the model's name says all, so there is no source.
        """
        check_address(provider.model, provider.base_url)
        check_key(provider.model, api_key, provider.key_name)
        self.model, self._provider, self._read = provider.model, provider, read
        source = source_of(provider.base_url)
        self.source = None if source == own_address else source
        self._http = http_client(provider.base_url, extra=extra)

    async def generate(self, request: Request) -> Answer:
        """Write one draft; raises TryAgainError or GenerationError."""
        return await ask(self._provider, lambda: self._send(request), self._read)

    async def _send(self, request: Request) -> Any:  # noqa: ANN401  # an optional import's type
        """Send the image, then the prompt."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()
