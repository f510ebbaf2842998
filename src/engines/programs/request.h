/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we write to a program: the hello, and one line per message with all that a handler sees.
 * Bytes that are no UTF-8 go into `…_b64` in place of the plain field; a null is left out. In a
 * frame, key and value lie behind the header, and only their lengths are in it. A task of a handler
 * that takes batches is one request whose messages are an array.
 */
#ifndef LW_ENGINES_PROGRAMS_REQUEST_H
#define LW_ENGINES_PROGRAMS_REQUEST_H

#include "base/text.h"
#include "core/delivery.h"

/* Appends; lack of memory stays in the text. `batch` NULL, or of size 0: one message at a time. */
void lw_programs_request_hello(struct lw_text *out, const char *service, const char *handler,
                               uint32_t window, const struct lw_batch_options *batch);
/* Appends the line, or nothing and false without memory. deadline_ms < 0: none. */
bool lw_programs_request_write(struct lw_text *out, int64_t id,
                               const struct lw_delivery *delivery, int64_t deadline_ms);
/* The same as the header of a frame: key_len and value_len in place of key and value. */
bool lw_programs_request_header(struct lw_text *out, int64_t id,
                                const struct lw_delivery *delivery, int64_t deadline_ms);

#endif
