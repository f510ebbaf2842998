/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lw_assert: a programmer's error, always compiled in; prints file, line and condition and
 * aborts. Never for input, brokers, handlers or lack of memory.
 */
#ifndef LW_BASE_ASSERT_H
#define LW_BASE_ASSERT_H

void lw_assert_failed(const char *condition, const char *file, int line)
    __attribute__((noreturn, cold));

#define lw_assert(condition)                                                                   \
    (__builtin_expect(!(condition), 0) ? lw_assert_failed(#condition, __FILE__, __LINE__)      \
                                       : (void)0)

/*
 * Inline whatever the compiler thinks: for the few functions on the path of every message whose
 * call would cost as much as their work. Measured by bench/core.
 */
#define LW_INLINE static inline __attribute__((always_inline))

#endif
