/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: the only place that calls malloc. Every function can fail and says so by NULL; lack of
 * memory is refused at start and is backpressure afterwards. `lw_alloc_fail_at(n)` makes the
 * n-th allocation from now fail once (0 switches off), `lw_alloc_count` counts them: the hooks
 * of tests/oom and of the allocation figures. The counters are process-wide test hooks.
 */
#ifndef LW_BASE_ALLOC_H
#define LW_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include <laneway/laneway.h>

void *lw_alloc(size_t size);                                     /* zeroed */
void *lw_alloc_array(size_t count, size_t size);                 /* zeroed; NULL on overflow */
void *lw_resize_array(void *pointer, size_t count, size_t size); /* new part is not zeroed */
char *lw_copy_text(const char *text);                            /* NULL gives NULL */
char *lw_copy_text_n(const char *text, size_t length);           /* adds the zero */
void *lw_copy_bytes(const void *data, size_t size);
void lw_free(void *pointer);

void lw_alloc_fail_at(uint64_t nth);
uint64_t lw_alloc_count(void); /* allocations so far in this process, all threads */
uint64_t lw_alloc_live(void);  /* allocations not yet freed */

#endif
