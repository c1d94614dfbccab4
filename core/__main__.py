import sys

try:
    from core.cli import main

    code = main() if __name__ == "__main__" else 0
except KeyboardInterrupt:  # before the command line has taken charge of it
    code = 130
if __name__ == "__main__":
    sys.exit(code)
