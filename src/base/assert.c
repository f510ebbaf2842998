/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a programmer's error: says which condition failed and where, and aborts. Writes to
 * the descriptor directly, since stdio's locks may be held by whoever failed. Any thread.
 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void
lw_assert_failed(const char *condition, const char *file, int line)
{
    char text[512];
    int length = snprintf(text, sizeof text,
                          "laneway: assertion failed at %s:%d: %s\n"
                          "laneway: this is a defect; please report it with this line\n",
                          file, line, condition);
    if (length > 0) {
        size_t size = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
        ssize_t written = write(STDERR_FILENO, text, size);
        (void)written;
    }
    abort();
}
