/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host with a moved clock: time stands still until a test moves it, and then jumps from one
 * deadline to the next, so that an hour of waiting costs nothing and every run is the same.
 * Descriptors are real: a turn looks at them without sleeping, so peers in the same process (over
 * loopback or a socket pair) work with the moved clock. Names are those that the test gives;
 * handlers on threads need the real loop.
 */
#ifndef TESTS_SUPPORT_VIRTUAL_HOST_H
#define TESTS_SUPPORT_VIRTUAL_HOST_H

#include "base/host.h"

#define VIRTUAL_START (1000000 * LW_MS)        /* monotonic ns at which it begins */
#define VIRTUAL_WALL_MS INT64_C(1700000000000) /* wall clock at that time */

enum { VIRTUAL_NAMES_MAX = 8, VIRTUAL_NAME_ADDRESSES_MAX = 4 };

/* A name and the addresses (of IP version 4) that a look-up gives, in this order. */
struct virtual_name {
    const char *name;
    const char
        *addresses[VIRTUAL_NAME_ADDRESSES_MAX]; /* ends with NULL; none: never answered */
};

struct virtual_host {
    struct lw_host host; /* first: &virtual->host is what is passed around */
    struct lw_list watches;
    struct lw_list lookups;
    const struct virtual_name *names; /* the test's; ends with a row of zeros; may be NULL */
    uint64_t due;                     /* of the next turn, as the last one said */
    uint64_t turns;
};

void virtual_host_init(struct virtual_host *virtual_host, uint64_t seed);
/* Takes turns at the present time until nothing is due now; fails the test after 100,000. */
void virtual_host_settle(struct virtual_host *virtual_host);
/* Lets `ns` pass, with a turn at every deadline on the way. */
void virtual_host_pass(struct virtual_host *virtual_host, uint64_t ns);
/* Jumps to the next deadline and settles; false when there is none before `limit` (ns). */
bool virtual_host_jump(struct virtual_host *virtual_host, uint64_t limit);

#endif
