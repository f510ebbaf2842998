/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people ask a running service: status (one line per topic, in serving order, with the word
 * for what it does and why) and explain (every message in hand and what it waits for, P8). Both
 * as JSON and as text. Reads the dispatcher's structures on the loop thread and changes nothing.
 * Rates come from two samples that are taken in turns that happen anyway: no timer, so an idle
 * process stays idle.
 */
#ifndef LW_SERVICE_REPORT_H
#define LW_SERVICE_REPORT_H

#include "base/json.h"
#include "dispatcher/dispatcher.h"

/* Who paused a topic, why, and until when. */
struct lw_pause_note {
    char who[64];
    char why[160];
    int64_t since_ms; /* wall time */
    int64_t until_ms; /* wall time; 0: until it is resumed */
};

/* Counts that rates are made of. */
struct lw_report_counts {
    uint64_t received;
    uint64_t settled;
    uint64_t results[5];
};

struct lw_report_sample {
    uint64_t at; /* monotonic ns */
    struct lw_report_counts *streams;
};

struct lw_report {
    struct lw_dispatcher *dispatcher;
    struct lw_turn turn;
    struct lw_report_sample older;
    struct lw_report_sample newer;
    struct lw_pause_note *pauses; /* by stream; counts while the stream is paused */
    struct lw_stream **served;    /* in serving order */
    uint32_t count;
};

/* After all subscriptions were added, before run. */
enum lw_status lw_report_init(struct lw_report *report, struct lw_dispatcher *dispatcher);
void lw_report_deinit(struct lw_report *report);

/* What is measured of a topic; -1: not known, or nothing to measure. */
struct lw_report_figures {
    int64_t lag; /* messages of the topic that are not settled, in hand or at the broker */
    int64_t retry_lag; /* the same of its retry tiers */
    int64_t p50_ns;    /* handler time in the last one to two minutes */
    int64_t p99_ns;
    uint64_t dead_last_hour;
};
void lw_report_figures(const struct lw_stream *stream, struct lw_report_figures *ret_figures);
/* "--" for -1, else a number or "12ms", "340us". */
void lw_report_format_count(int64_t count, char out[32]);
void lw_report_format_ns(int64_t ns, char out[32]);

/* One topic's line. */
struct lw_report_lane {
    const struct lw_stream *stream;
    unsigned served;   /* from 1; equals share it */
    const char *state; /* a word */
    char reason[320];  /* more of it, may be empty */
    double rate;       /* settled per second */
    int64_t oldest_ms; /* age of the oldest message in hand, -1 none */
    uint64_t done;
    uint64_t dead;
    uint32_t partitions;
    struct lw_report_figures figures;
};
void
lw_report_lane(const struct lw_report *report, uint32_t index, struct lw_report_lane *ret_lane);
/* "ready", "draining", "not ready: ..." */
void lw_report_health(const struct lw_report *report, char *out, size_t size);

/* Rates of all topics together, per second. */
struct lw_report_totals {
    double in;
    double results[5]; /* by enum lw_verdict */
};
struct lw_report_totals lw_report_total(const struct lw_report *report);
int64_t lw_report_up_ms(const struct lw_dispatcher *dispatcher);

void lw_report_status_json(const struct lw_report *report, struct lw_json *json);
void lw_report_status_text(const struct lw_report *report, struct lw_text *out);
/* `topic` NULL: all. At most `max` messages, the oldest of each partition first. */
void lw_report_explain_json(const struct lw_report *report, const char *topic, uint32_t max,
                            struct lw_json *json);
void lw_report_explain_text(const struct lw_report *report, const char *topic, uint32_t max,
                            struct lw_text *out);

#endif
