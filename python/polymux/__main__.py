"""``python -m polymux``: run the command ``polymux``."""

import sys

from polymux.cli import main

if __name__ == "__main__":
    sys.exit(main())
