# SPDX-License-Identifier: Apache-2.0
"""laneway_peer.py WORK: a handler as a user of the Python client writes it."""
import sys

import laneway
import workloads

app = laneway.App()
work = workloads.WORKS[sys.argv[1]]


@app.handler
def handle(message):
    workloads.run(work, message.value)


app.run()
