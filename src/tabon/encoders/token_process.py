"""A process that only tokenises: what `tokens.TokenProcesses` starts."""

import json
import sys
from typing import IO

from tabon._internal.extras import require
from tabon.encoders.tokens import receive, send, tokenise


def serve(asked: IO[bytes], answers: IO[bytes]) -> None:
    """Tokenise what is asked until there is no more; the tokenizer comes first."""
    library = require("tokenizers", extra="minilm", feature="tokenizers")
    tokenizer = library.Tokenizer.from_str(receive(asked)[0].decode())
    while True:
        try:
            sentences = json.loads(receive(asked)[0])
        except EOFError:
            return
        tokens = tokenise(tokenizer, sentences)
        send(answers, tokens.lengths.tobytes(), tokens.ids.tobytes())


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
