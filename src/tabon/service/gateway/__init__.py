"""The best-of-N gateway: OpenAI's chat completions, with drafts of an upstream and tabon's pick.

    request ─▶ asking ─▶ gathering (upstream, pruning) ─▶ choosing (the service) ─▶ completions

It is a door of the service (docs/gateway.md): the fence, the selector and the batches are the service's.
"""

from tabon.service.gateway.routes import gateway_door
from tabon.service.gateway.settings import GatewaySettings, gateway_settings

__all__ = ["GatewaySettings", "gateway_door", "gateway_settings"]
