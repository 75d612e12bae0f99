"""Exit codes of the command line, as shells and other programs read them."""

import signal

WRONG_COMMAND_LINE_EXIT_CODE = 2
INTERRUPTED_EXIT_CODE = 128 + signal.SIGINT
TERMINATED_EXIT_CODE = 128 + signal.SIGTERM
