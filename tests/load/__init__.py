"""A load test of the app: `python -m tests.load [PART ...] [--sessions N]`. All parts take about fifteen minutes on two cores.

Each part has a server of its own on the loopback interface, with an empty folder of finished runs, and prints a row of a Markdown table
for each number of sessions. A figure of which something is demanded has the demand beside it, and is bold where it does not meet it;
below the table, for each activity, stands the smallest number of sessions at which that is so. What went wrong is told in words on
standard error.

| part | what the sessions do | numbers |
|---|---|---|
| `open` | All open the first page in the same moment. An answer is the page with the data of its three charts. | 40, 100, 200 |
| `toggle` | Each looks at a finished comparison in another way every 10 s: another tab, a run hidden. | 40, 80 |
| `watch` | All press *Run* on the same new run in the same moment, and watch it to its end. | 1, 5, 40, 80 |
| `download` | All download the CSV of the first page's runs in the same moment. | 40 |
| `leave` | Who watch a run lose their connection and come back: one half in the same tab, the other in a new one. | 40 |
| `rerun` | One at a time reruns the first page, thirty times, and then Identity path. | 1 |
| `memory` | A hundred rerun the first page, a thousand times together; five have two hundred tiny runs computed. | 100 |
| `browsers` | Real browsers (Chromium) open the first page and watch a run. | 3 |

**Sessions.** They are no browsers: `session.py` says over a bare WebSocket what Streamlit's front end says, in Streamlit's own messages,
and keeps what it keeps: the widgets' states, the page's elements, the address, large messages that the server then only refers to, and
the timers by which fragments poll. `test_load.py` holds them against a real browser. They draw nothing, so that they are cheap; but they
share the machine with the server. *harness CPU* is their part of one core: where it is more than some percent, the server would do better
by itself.

**Times** are seconds, by the clock that all processes of the machine share. An answer has come when a run of the page has ended with what
was asked for on it; what does not come is infinitely late. A *tick* is asked for by a fragment's timer. A *new point* is a step of the
run: it is computed when the engine hands its chunk of steps to the worker - `served.py` wraps that iteration in the server and writes
down the moment - and a session has it when the last chart has been sent that shows it. Only points count that were computed after the
session's *Run* had been answered.

**Speed** is steps per second between chunks, as the same record has them, while all watch; its share is of the mean of two unwatched runs
of the same kind, the one before it and the one after it, whose only viewer left at once.

**CPU** is the server's, without its training: that has threads of a lower priority, whose time Linux tells apart. *Health* is asked for
five times a second by a process of its own. *Errors* are exceptions on a page, connections that the server ended, answers that did not
come, answers of health other than 200, faults in the server's log, and timers that go on when nothing changes any more. *Lost* are
sessions that did not get everything.
"""
