import atexit
import gc
import runpy
import sys

# A command builds modules and programs and ends: looking for cycles among them, above all at the end, takes most of a second.
gc.disable()
atexit.register(gc.freeze)

if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["bench"]:  # it measures the engine and stands above it, with a command line of its own
            sys.argv[1:2] = []
            runpy.run_module("benchmarks", run_name="__main__")
        from core.cli.main import main

        sys.exit(main())
    except KeyboardInterrupt:  # before the command line has taken charge of it
        sys.exit(130)
