"""``python -m directrank`` is the command line."""

import signal
import sys

from directrank.cli import main

if __name__ == "__main__":
    code = main()
    # A cluster's warning that arrives while Python ends must not make a finished job look killed.
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(code)
