"""Talk around a report: what a chat model says to its user and no radiologist to a colleague."""

import re
from functools import lru_cache
from typing import Final

_TALK: Final = (
    r"as an? (?:ai|artificial intelligence|(?:large )?language model)",
    r"i(?: am|['\u2019]m) (?:an? (?:ai|language)|sorry|unable|not able|not a (?:doctor|radiologist))",
    r"i (?:can ?not|can['\u2019]?t|do not have|don['\u2019]t have|am unable|apologi[sz]e)",
    r"i(?: have|['\u2019]ve)? (?:reviewed|analy[sz]ed|prepared|generated|written|created)",
    r"i (?:hope|understand|would be happy|will (?:now |try to )?(?:write|provide|generate))",
    r"(?:\A|(?<=[.!] ))(?:sure|certainly|of course|absolutely|okay|great)(?: thing)?\s*[!,.:]",
    r"here(?: is|['\u2019]s| are) (?:the|a|an|my|your|some)\b",
    r"below is (?:the|a|an|my|your)\b",
    r"based on the (?:provided|given|attached|uploaded|supplied)\b",
    r"(?:the|your) (?:provided|uploaded|attached|requested) (?:image|x-?ray|radiograph|report)",
    r"please (?:note that (?:this|i|my)\b|let me know|consult|provide|upload|remember|be aware)",
    r"let me know\b",
    r"(?:would|do|can|could) you (?:like|want|need|please|provide|share|upload|tell)\b",
    r"(?:this|the) (?:report|analysis|response) (?:was|is|has been) (?:\w+ )?(?:generated|for informational)",
    r"(?:not|no) (?:a )?(?:substitute for|medical advice)",
    r"disclaimer\b",
    r"feel free to\b",
    r"```",
)
_PATTERN: Final = re.compile("|".join(rf"(?:(?<!\w){talk})" for talk in _TALK), re.IGNORECASE)


@lru_cache(maxsize=1 << 16)
def is_chatty(sentence: str) -> bool:
    """Whether a sentence speaks to a user.

    >>> is_chatty("Certainly! Here is the report:"), is_chatty("Please correlate clinically.")
    (True, False)
    """
    return _PATTERN.search(sentence) is not None
