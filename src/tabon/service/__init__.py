"""The HTTP door: select, explain and look at a bank over a loopback port.

    request ─▶ fences ─▶ wire (bytes to a query) ─▶ batching (one worker) ─▶ selector ─▶ wire ─▶ answer

Routes hold no arithmetic: an answer is the record that `tabon select` would write.
"""

from tabon.service.app import Door, fenced_app, make_app
from tabon.service.explorer.records import NOTICE
from tabon.service.guard import Fence, FenceSettings, read_token
from tabon.service.parsing import Limits
from tabon.service.query_service import Answerer, AnswerSettings, answerer_of
from tabon.service.server import ServeSettings, serve

__all__ = [
    "NOTICE",
    "AnswerSettings",
    "Answerer",
    "Door",
    "Fence",
    "FenceSettings",
    "Limits",
    "ServeSettings",
    "answerer_of",
    "fenced_app",
    "make_app",
    "read_token",
    "serve",
]
