"""``python -m directrank`` is the command line."""

import signal
import sys
from typing import NoReturn

from directrank import cli


def main() -> NoReturn:
    """Run the command of ``sys.argv`` and end the process."""
    code = cli.main()
    # A cluster's warning that arrives while Python ends must not make a finished job look killed.
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


if __name__ == "__main__":
    main()
