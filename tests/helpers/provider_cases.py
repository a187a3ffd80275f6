"""The providers behind the loopback server, and what one request of them is."""

import provider_server as server_side
from provider_server import KEY
from tabon.generation.protocol import EncodedImage, Parameters, Request
from tabon.generation.providers.gemini import GeminiGenerator
from tabon.generation.providers.mistral import MistralGenerator
from tabon.generation.providers.openai_compatible import OpenAICompatibleGenerator

MAKERS = {"gemini": GeminiGenerator, "mistral": MistralGenerator, "openai": OpenAICompatibleGenerator}


PROVIDERS = sorted(MAKERS)


PROMPT = "Canary prompt: the prior report said Zyxomma effusion."


PNG = EncodedImage(server_side.MAGIC["image/png"] + bytes(range(256)) * 3, "image/png", "0" * 64)


SECRETS = (KEY, "Zyxomma")


def request_of(seed=7, *, image=PNG, **parameters):
    """Make a request that carries the canaries."""
    return Request(prompt=PROMPT, image=image, seed=seed, parameters=Parameters(**parameters))
