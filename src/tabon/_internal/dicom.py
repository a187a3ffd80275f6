"""pydicom without its checks of values.

pydicom warns about values that do not fit their type, or logs them, and shows
them: in a broken file such a value may run over the report or the patient's
name. So it does not check them here. That is a setting of the whole process,
hence one lock for all who switch it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

_LOCK = RLock()


@contextmanager
def unchecked_values(pydicom: Any) -> Iterator[None]:  # noqa: ANN401
    """Switch the package's checks of values off, for one thread at a time."""
    with _LOCK, pydicom.config.disable_value_validation():
        yield
