/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The storage of the marker that a handler is running on this thread; see the header. One word
 * per thread, written only by engines around a call, read by whoever must know whether it is
 * called from inside a handler.
 */
#include "base/inside.h"

_Thread_local const void *lw_inside_current = NULL;
