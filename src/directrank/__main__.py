"""``python -m directrank`` is the command line."""

import sys

from directrank.cli import main

if __name__ == "__main__":
    sys.exit(main())
