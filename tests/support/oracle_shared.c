/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle for brokers that settle messages one by one: what the broker itself hears must agree
 * with the history. Each delivery is settled at most once, an ack comes only for what was settled
 * for good, a nack only for what is to come again. Where the broker keeps a key at one member, no
 * two members run it at the same time, but for a member that has lost its connection.
 */
#include "tests/support/oracle_state.h"

/* -- What the broker hears -------------------------------------------------------------------------- */

static struct account *
account_at(struct oracle *oracle, uint32_t place, int64_t position)
{
    (void)oracle_flags_at(oracle, place, position);
    return &oracle->places[place].accounts[position];
}

static void
accuse(struct oracle *oracle, enum oracle_promise promise, uint32_t place, int64_t position,
       const char *what)
{
    oracle_violation(oracle, promise, "place %u position %lld: %s", place, (long long)position,
                     what);
}

void
oracle_given(struct oracle *oracle, uint32_t place, int64_t position)
{
    account_at(oracle, place, position)->out++;
}

void
oracle_write_off(struct oracle *oracle, uint32_t place, int64_t position, uint32_t count)
{
    struct account *account = account_at(oracle, place, position);
    account->out = account->out > count ? (uint8_t)(account->out - count) : 0;
}

void
oracle_owe(struct oracle *oracle, const struct oracle_event *event, bool is_final)
{
    struct account *account = account_at(oracle, event->place, event->position);
    account->ack_due += is_final;
    account->nack_due += !is_final;
}

static void
settle(struct oracle *oracle, uint32_t place, int64_t position)
{
    struct account *account = account_at(oracle, place, position);
    if (account->out == 0) {
        accuse(oracle, ORACLE_P5, place, position, "settled more often than it was given out");
        return;
    }
    account->out--;
}

void
oracle_acked(struct oracle *oracle, uint32_t place, int64_t position)
{
    struct account *account = account_at(oracle, place, position);
    if (account->ack_due == 0) {
        accuse(oracle, ORACLE_P1, place, position, "acknowledged, though not settled for good");
        return;
    }
    account->ack_due--;
    settle(oracle, place, position);
}

void
oracle_nacked(struct oracle *oracle, uint32_t place, int64_t position)
{
    struct account *account = account_at(oracle, place, position);
    if (account->nack_due == 0) {
        accuse(oracle, ORACLE_P5, place, position, "given back, though it is settled");
        return;
    }
    account->nack_due--;
    settle(oracle, place, position);
}

/* -- A key is at one member --------------------------------------------------------------------------- */

/* A run of that key in the present ownership of the seat; NULL: none runs. */
static const struct run *
find_running(const struct seat *seat, uint64_t hash, int64_t *ret_position)
{
    const struct ownership *ownership = seat->ownership;
    if (!ownership || ownership->is_ended) {
        return NULL;
    }
    for (int64_t i = ownership->low - ownership->base; i < ownership->count; i++) {
        const struct run *run = &ownership->runs[i];
        if (run->running > 0 && run->key != NONE && seat->keys[run->key].hash == hash) {
            *ret_position = ownership->base + i;
            return run;
        }
    }
    return NULL;
}

static bool
has_running_lane(const struct oracle *oracle, uint32_t member, uint32_t group, uint64_t hash)
{
    for (const struct lane *lane = oracle->lanes[member]; lane; lane = lane->next) {
        if (lane->hash == hash && lane->group == group) {
            return lane->running > 0;
        }
    }
    return false;
}

void
oracle_check_apart(struct oracle *oracle, const struct oracle_event *event, uint64_t hash)
{
    const struct place *place = &oracle->places[event->place];
    for (uint32_t m = 0; m < ORACLE_MEMBERS_MAX; m++) {
        const struct seat *seat = place->seats[m];
        int64_t position = 0;
        bool is_other = seat && m != event->member && !oracle->is_dead[m];
        if (!is_other || !has_running_lane(oracle, m, place->group, hash) ||
            !find_running(seat, hash, &position) || oracle->overlap_count == OVERLAPS_MAX) {
            continue;
        }
        oracle->overlaps[oracle->overlap_count++] = (struct overlap){
            event->now, seat->ownership->generation, position, m, event->place
        };
    }
}

void
oracle_judge_overlaps(struct oracle *oracle)
{
    for (uint32_t i = 0; i < oracle->overlap_count; i++) {
        const struct overlap *overlap = &oracle->overlaps[i];
        const struct seat *seat = oracle->places[overlap->place].seats[overlap->member];
        const struct ownership *ownership = seat->ownership;
        bool is_live = ownership->generation == overlap->generation && !ownership->is_ended;
        if (is_live && !oracle->is_dead[overlap->member]) {
            oracle_violation(oracle, ORACLE_P3,
                             "member %u place %u position %lld: another member started its key",
                             overlap->member, overlap->place, (long long)overlap->position);
        }
    }
    oracle->overlap_count = 0;
}
