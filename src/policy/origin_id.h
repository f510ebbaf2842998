/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The id of a Pulsar message as text in the properties of copies. C++ and Python write
 * "(ledger,entry,partition,batch)", Java "ledger:entry:partition" with ":batch" for a member of a
 * batch; both mean -1 for no partition and no batch. Reading takes either and nothing else. Pure,
 * no allocation.
 */
#ifndef LW_POLICY_ORIGIN_ID_H
#define LW_POLICY_ORIGIN_ID_H

#include <stdbool.h>
#include <stdint.h>

#include <laneway/laneway.h>

enum { LW_ORIGIN_ID_BYTES = 72 }; /* of the longest text, with its zero */

struct lw_origin_id {
    int64_t ledger;
    int64_t entry;
    int32_t partition;   /* -1: not partitioned */
    int32_t batch_index; /* -1: not a member of a batch */
};

/* False for any other text. Of Java's id of a chunked message, "first;last", the last counts. */
bool lw_origin_id_parse(struct lw_bytes text, struct lw_origin_id *ret_id);
/* Writes it as Java does. */
void lw_origin_id_write_java(const struct lw_origin_id *id, char out[LW_ORIGIN_ID_BYTES]);
/* Writes where it lies in its partition, as identities say it: "12:7" or "12:7:3". */
void lw_origin_id_write_place(const struct lw_origin_id *id, char out[LW_ORIGIN_ID_BYTES]);

#endif
