"""What is made once and shared by all threads."""

import threading
from collections.abc import Callable
from typing import Any

from cachetools import LRUCache, cached


def once(size: int) -> Callable[[Callable[..., Any]], Any]:
    """Decorates a function of hashable arguments: its last `size` results are kept.

    Of those who ask for the same in the same moment, one makes it and the others wait; functools.lru_cache would let all of them make it.
    """
    return cached(LRUCache(size), condition=threading.Condition())
