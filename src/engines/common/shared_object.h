/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a file a shared object that this process can load? Answered from its headers, so that nothing
 * of it runs: the loader itself would say it in words for programmers, and would end the process
 * over a file that was cut short while it was copied.
 */
#ifndef LW_ENGINES_COMMON_SHARED_OBJECT_H
#define LW_ENGINES_COMMON_SHARED_OBJECT_H

/*
 * Returns NULL when it is one, else why not, as a clause about "it"; *ret_code is the number of a
 * system error, or 0 when the file could be looked at. Blocks on the disk only.
 */
const char *lw_shared_object_fault(const char *path, int *ret_code);

#endif
