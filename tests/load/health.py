"""Asks the server five times a second whether it is well, in a process of its own: `python -m tests.load.health PORT`.

A line of what it writes is the moment of asking, the seconds until the answer, and the answer's status, 0 where there was none.
"""

import http.client
import sys
import time

EVERY, AT_MOST = 0.2, 30.0  # seconds


def ask(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=AT_MOST)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


if __name__ == "__main__":
    while True:
        asked = time.monotonic()
        status = ask(int(sys.argv[1]))
        answered = time.monotonic()
        print(asked, answered - asked, status, flush=True)
        time.sleep(max(asked + EVERY - answered, 0.0))
