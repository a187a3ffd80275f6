"""The best-of-N gateway: OpenAI's chat completions, with drafts of an upstream and tabon's pick.

    request ─▶ chat_request ─▶ draft_set (upstream, early_stop) ─▶ ranking (the service) ─▶ completions

It is part of the service (docs/guide/gateway.md), whose request guard, selector and batches it uses.
"""

from tabon.service.gateway.routes import gateway_module
from tabon.service.gateway.settings import GatewaySettings, gateway_settings

__all__ = ["GatewaySettings", "gateway_module", "gateway_settings"]
