"""Runs a program as the terminal's foreground job: foreground.py PROGRAM ARGUMENTS...

Ctrl-C then reaches the program and not make, which would report an interrupt and fail although the
program ended well.
"""

import os
import signal
import sys

if sys.stdin.isatty() and os.tcgetpgrp(0) == os.getpgrp():
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # or taking the terminal would stop us
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # Ctrl-Z would leave make waiting for ever
os.execv(sys.argv[1], sys.argv[1:])
