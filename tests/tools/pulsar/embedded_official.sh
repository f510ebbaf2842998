#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# embedded_official.sh PROGRAM: the official Python client produces to and consumes from the
# embedded broker, so that what our tests rely on is what another implementation understands.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
python=$("$root/tools/broker" pulsar python) || exit $?
exec timeout 200 "$python" "$root/tests/support/pulsar/embedded_official.py" "$1"
