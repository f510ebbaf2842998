#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests of the Python client, and its types if mypy is there.
set -eu
cd "$(dirname "$0")/../../clients/python"
export PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1
python3 -W error -m unittest discover -s tests
if python3 -m mypy --version >/dev/null 2>&1; then
    python3 -m mypy --cache-dir=/dev/null laneway
fi
