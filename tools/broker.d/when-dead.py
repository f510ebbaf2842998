# SPDX-License-Identifier: Apache-2.0
"""when-dead.py PID COMMAND [ARG...]: waits for the end of any process, then becomes COMMAND.

Costs nothing while it waits, and cannot mistake a later process with the same pid for this one.
"""
import os
import select
import sys

try:
    waiting = select.poll()
    waiting.register(os.pidfd_open(int(sys.argv[1])), select.POLLIN)
    waiting.poll()
except ProcessLookupError:
    pass
os.execv(sys.argv[2], sys.argv[2:])
