"""The HTTP service: select, explain and look at a bank over a loopback port.

    request ─▶ guard ─▶ app (routes) ─▶ parsing (a query) ─▶ batcher (one worker) ─▶ selector ─▶ app ─▶ answer

Routes hold no arithmetic: an answer is the record that `tabon select` would write.
"""

from tabon.service.app import RouteModule, guarded_app, make_app
from tabon.service.guard import GuardSettings, RequestGuard, read_token
from tabon.service.parsing import NOTICE, Limits
from tabon.service.query_service import AnswerSettings, QueryService, allowed_settings, query_service_of
from tabon.service.server import ServeSettings, listening, serve

__all__ = [
    "NOTICE",
    "AnswerSettings",
    "GuardSettings",
    "Limits",
    "QueryService",
    "RequestGuard",
    "RouteModule",
    "ServeSettings",
    "allowed_settings",
    "guarded_app",
    "listening",
    "make_app",
    "query_service_of",
    "read_token",
    "serve",
]
