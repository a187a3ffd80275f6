"""What drafts cost: prices, estimates, and a cap that holds."""

from dataclasses import dataclass
from math import isfinite

from tabon.errors import BadInputError
from tabon.generation.protocol import Answer, Request

CHARACTERS_PER_TOKEN = 4.0
IMAGE_TOKENS = 1100  # what a large image costs with the paper's providers, rounded up
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float

    def __post_init__(self) -> None:
        """Refuse prices that would switch a spend cap off."""
        if not all(0.0 <= dollars <= MILLION for dollars in (self.input, self.output)):
            raise BadInputError(
                f"the price is {self.input},{self.output}; give two numbers from 0 to {MILLION}, "
                "dollars per million tokens"
            )

    def cost(self, answer: Answer) -> float | None:
        """Return what an answer cost; None where the provider did not say how long it was."""
        if answer.input_tokens is None or answer.output_tokens is None:
            return None
        return (answer.input_tokens * self.input + answer.output_tokens * self.output) / MILLION

    def most(self, request: Request) -> float:
        """Return the most that a request may cost, by estimate."""
        tokens = len(request.prompt) / CHARACTERS_PER_TOKEN + (IMAGE_TOKENS if request.image else 0)
        return (tokens * self.input + request.parameters.max_tokens * self.output) / MILLION


FREE = Price(0.0, 0.0)


def read_price(text: str) -> Price:
    """Read a price given as input,output.

    >>> read_price("0.10,0.40")
    Price(input=0.1, output=0.4)
    """
    try:
        given, made = map(float, text.split(","))
    except ValueError:
        raise BadInputError(f"--price is {text!r}; give dollars per million tokens as INPUT,OUTPUT") from None
    return Price(given, made)


class Budget:
    """Money spent and promised, held under a cap."""

    def __init__(self, price: Price, *, cap: float | None, spent: float = 0.0) -> None:
        """Start from what a journal says was spent."""
        if cap is not None and not (isfinite(cap) and cap >= 0.0):
            raise BadInputError(f"the spend cap is {cap}; give dollars, 0 or more, or leave it out")
        self.price, self.spent, self._cap = price, spent, cap
        self._promised = self._dearest = 0.0

    def reserve(self, request: Request) -> float | None:
        """Promise the most that a request may cost; None where the cap would be passed.

        An answer that cost more than its estimate raises all later estimates.
        """
        most = max(self.price.most(request), self._dearest)
        if self._cap is not None and self.spent + self._promised + most > self._cap:
            return None
        self._promised += most
        return most

    def promise(self, amount: float) -> None:
        """Count money that an earlier run promised."""
        self._promised += amount

    def settle(self, reserved: float, cost: float | None) -> float:
        """Turn a promise into money spent; an unknown cost counts as the promise."""
        self._promised -= reserved
        paid = reserved if cost is None else cost
        self.spent += paid
        self._dearest = max(self._dearest, paid)
        return paid

    def release(self, reserved: float) -> None:
        """Take a promise back: nothing was generated."""
        self._promised -= reserved
