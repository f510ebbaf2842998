/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault points: named places where a test may make something go wrong. A table belongs to one
 * host (no globals); a host without a table (production) pays one branch per point. A rule is
 * "NAME:N:ACTION": at the N-th passage of NAME do ACTION (`fail` makes the point answer true,
 * `kill` raises SIGKILL, `abort` aborts); "NAME:pP:ACTION" does it with probability P percent by
 * the table's own seeded generator. Rules are separated by commas. Any thread may pass a point.
 */
#ifndef LW_BASE_FAULT_H
#define LW_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laneway/laneway.h>

struct lw_faults;

/* Parses rules; LW_STATUS_INVALID with a text in ret_error. The caller destroys. */
enum lw_status lw_faults_create(const char *rules, uint64_t seed, struct lw_faults **ret_faults,
                                struct lw_error *ret_error);
void lw_faults_destroy(struct lw_faults *faults);
bool lw_faults_hit(struct lw_faults *faults, const char *name);
/* Passages of a point so far, also of points without a rule. */
uint64_t lw_faults_count(const struct lw_faults *faults, const char *name);
/* Calls fn for every point passed so far. */
void lw_faults_each(const struct lw_faults *faults,
                    void (*fn)(const char *name, uint64_t count, void *user), void *user);

/* True when the point shall fail now. `faults` may be NULL. */
static inline bool
lw_fault_point(struct lw_faults *faults, const char *name)
{
    return __builtin_expect(faults != NULL, 0) && lw_faults_hit(faults, name);
}

#endif
