import sys

if __name__ == "__main__":
    try:
        from core.cli import main

        sys.exit(main())
    except KeyboardInterrupt:  # before the command line has taken charge of it
        sys.exit(130)
