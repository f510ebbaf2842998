# SPDX-License-Identifier: Apache-2.0
#
# Install: command, both libraries, headers, pkg-config file and CMake package.
