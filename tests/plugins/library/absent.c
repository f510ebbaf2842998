/* SPDX-License-Identifier: Apache-2.0 */
/*
 * absent.c: a library that lies where nobody looks for it, for a plug-in that needs it and must be
 * refused in words that name it.
 */
#include <laneway/laneway.h>

LW_API int laneway_absent(void);

int
laneway_absent(void)
{
    return 1;
}
