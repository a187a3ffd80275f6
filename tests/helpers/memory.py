"""How much memory a piece of work holds at most."""

import gc
import tracemalloc


def peak(work):
    """Return the most bytes that Python and numpy hold while the work is done, its result included."""
    gc.collect()
    tracemalloc.start()
    kept = work()
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return top
