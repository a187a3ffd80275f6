"""Optional dependencies."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_extra_that_is_named_can_be_installed():
    """A message that says `pip install 'tabon[…]'` names an extra of pyproject.toml."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r'(?:extra=|EXTRA = )"([^"]+)"', text)}
    assert named
    assert named <= known.keys()
