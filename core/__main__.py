import atexit
import gc
import sys

# A command builds modules and programs and ends: looking for cycles among them, above all at the end, takes most of a second.
gc.disable()
atexit.register(gc.freeze)

if __name__ == "__main__":
    try:
        from core.cli import main

        sys.exit(main())
    except KeyboardInterrupt:  # before the command line has taken charge of it
        sys.exit(130)
