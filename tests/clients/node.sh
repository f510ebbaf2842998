#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests of the Node client.
set -eu
cd "$(dirname "$0")/../../clients/node"
command -v node >/dev/null || { echo "node is not installed (tools/setup installs it)" >&2 && exit 77; }
node --test test/*.test.js test/*.test.mjs
