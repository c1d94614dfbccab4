"""Sessions take turns in drawing their pages."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = 2  # pages that are drawn beside each other: more would only interrupt each other, and the server's answers (docs/hosting.md)
ROOM = threading.Semaphore(AT_ONCE)
INSIDE = threading.local()  # a fragment is drawn within its page, or alone


@contextmanager
def turn() -> Iterator[None]:
    """Waits until there is room for this page."""
    if getattr(INSIDE, "drawing", False):
        yield
        return
    with ROOM:
        INSIDE.drawing = True
        try:
            yield
        finally:
            INSIDE.drawing = False
