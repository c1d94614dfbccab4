import sys

from benchmarks.ratios import main
from core.cli.main import exit_code

if __name__ == "__main__":
    sys.exit(exit_code(main))
