/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target for what is out follows from the room: demand (at most the queue's size) without
 * what is queued, limited by the bytes that the mean message leaves room for. Pure.
 */
#include "brokers/pulsar/permits.h"

enum { PERIOD = 64, WINDOW_MAX = 1 << 30, SCALE = 16 };

void
lw_pulsar_permits_init(struct lw_pulsar_permits *permits, bool is_exact, uint32_t window_max,
                       uint64_t bytes_max)
{
    window_max = window_max > 0 ? window_max : 1;
    *permits = (struct lw_pulsar_permits){
        .is_exact = is_exact,
        .window_max = window_max < WINDOW_MAX ? window_max : WINDOW_MAX,
        .bytes_max = bytes_max > 0 ? bytes_max : UINT64_MAX,
        .largest = 1,
        .largest_before = 1,
    };
}

void
lw_pulsar_permits_begin(struct lw_pulsar_permits *permits)
{
    permits->out = 0;
}

void
lw_pulsar_permits_demand(struct lw_pulsar_permits *permits, uint32_t messages, uint64_t bytes)
{
    permits->demand = messages;
    permits->demand_bytes = bytes;
}

void
lw_pulsar_permits_charge(struct lw_pulsar_permits *permits, uint32_t messages, uint64_t bytes)
{
    permits->out -= messages;
    if (messages == 0) {
        return;
    }
    if (++permits->entries == PERIOD) {
        permits->entries = 0;
        permits->largest_before = permits->largest;
        permits->largest = 1;
    }
    permits->largest = messages > permits->largest ? messages : permits->largest;
    if (__builtin_expect(messages != 1, 0)) {
        bytes /= messages;
    }
    permits->bytes_scaled += bytes - permits->bytes_scaled / SCALE;
}

/* Permits that bring at most `room` messages. */
static uint32_t
permits_for(const struct lw_pulsar_permits *permits, uint32_t room)
{
    uint32_t largest = permits->largest > permits->largest_before ? permits->largest
                                                                  : permits->largest_before;
    if (room == 0) {
        return 0;
    }
    largest = largest > 0 ? largest : 1; /* nothing came yet */
    if (permits->is_exact) {
        return room > largest ? room - largest + 1 : 1;
    }
    return room > largest ? room / largest : 1;
}

static uint32_t
room_of(const struct lw_pulsar_permits *permits, uint32_t window)
{
    uint64_t bytes = permits->bytes_max < permits->demand_bytes ? permits->bytes_max
                                                                : permits->demand_bytes;
    if (permits->queued >= window || bytes == 0 || permits->queued_bytes >= bytes) {
        return 0;
    }
    uint32_t room = window - permits->queued;
    uint64_t mean = permits->bytes_scaled / SCALE + 1;
    uint64_t fitting = (bytes - permits->queued_bytes) / mean;
    if (fitting < room) {
        room = (uint32_t)fitting;
    }
    return room > 0 || permits->queued > 0 ? room : 1;
}

uint32_t
lw_pulsar_permits_grant(struct lw_pulsar_permits *permits)
{
    uint32_t window = permits->demand < permits->window_max ? permits->demand
                                                            : permits->window_max;
    int64_t target = permits_for(permits, room_of(permits, window));
    int64_t missing = target - permits->out;
    bool is_dry = permits->out <= 0 && permits->queued == 0;
    if (target == 0 || missing <= 0 ||
        (!is_dry && missing * 2 < (int64_t)permits_for(permits, window))) {
        return 0;
    }
    missing = missing < INT32_MAX ? missing : INT32_MAX;
    permits->out += missing;
    permits->granted += (uint64_t)missing;
    return (uint32_t)missing;
}
