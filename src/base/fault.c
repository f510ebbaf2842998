/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of fault points: for each name how often it was passed, and the rules. A point is
 * known from its first passage or its first rule on. A mutex guards all of it: engines pass
 * points on their threads, and only tests have a table, so its cost meets nobody else. The
 * generator is the table's own (splitmix64), so one seed gives one run on one thread.
 */
#include "base/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/text.h"

enum action { ACTION_FAIL, ACTION_KILL, ACTION_ABORT };

struct rule {
    struct rule *next;
    uint64_t at;          /* this passage; 0: by probability */
    uint64_t probability; /* of 2^32 */
    enum action action;
};

struct point {
    uint64_t count;
    struct rule *rules;
};

struct lw_faults {
    pthread_mutex_t mutex;
    struct lw_map points; /* name -> struct point */
    uint64_t random_state;
};

static uint32_t
next_random(struct lw_faults *faults)
{
    uint64_t z = faults->random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}

/* Returns the point of that name, made when it is new; NULL without memory. */
static struct point *
get_point(struct lw_faults *faults, struct lw_bytes name)
{
    struct point *point = lw_map_get(&faults->points, name);
    if (point) {
        return point;
    }
    point = lw_alloc(sizeof *point);
    if (point && lw_map_set(&faults->points, name, point) != LW_STATUS_OK) {
        lw_free(point);
        return NULL;
    }
    return point;
}

/* -- Rules ------------------------------------------------------------------------------------- */

static bool
parse_action(struct lw_bytes text, enum action *ret_action)
{
    static const char *const names[] = { "fail", "kill", "abort" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (lw_text_is_equal(text, names[i])) {
            *ret_action = (enum action)i;
            return true;
        }
    }
    return false;
}

/* "12" is a passage, "p12" a probability in percent. */
static bool
parse_when(struct lw_bytes text, struct rule *rule)
{
    const char *from = (const char *)text.data;
    bool is_percent = text.size > 0 && from[0] == 'p';
    int64_t number = 0;
    struct lw_bytes digits = { from + is_percent, text.size - is_percent };
    if (!lw_bytes_to_int(digits, &number) || number < 1 || (is_percent && number > 100)) {
        return false;
    }
    if (is_percent) {
        rule->probability = ((uint64_t)number << 32) / 100;
    } else {
        rule->at = (uint64_t)number;
    }
    return true;
}

/* Cuts the part behind the last colon off *rest. */
static struct lw_bytes
cut_last(struct lw_bytes *rest)
{
    const char *from = (const char *)rest->data;
    const char *colon = memrchr(from, ':', rest->size);
    if (!colon) {
        return (struct lw_bytes){ from, 0 };
    }
    size_t size = (size_t)(from + rest->size - colon) - 1;
    rest->size = (size_t)(colon - from);
    return (struct lw_bytes){ colon + 1, size };
}

static enum lw_status
add_rule(struct lw_faults *faults, struct lw_bytes text, struct lw_error *ret_error)
{
    struct rule parsed = { .at = 0 };
    struct lw_bytes name = text;
    struct lw_bytes action = cut_last(&name);
    struct lw_bytes when = cut_last(&name);
    if (!parse_action(action, &parsed.action) || !parse_when(when, &parsed) || name.size == 0) {
        lw_error_set(ret_error, LW_STATUS_INVALID, "",
                     "fault rule \"%.*s\" is not NAME:N:ACTION", (int)text.size,
                     (const char *)text.data);
        lw_error_help(ret_error, "write the number of a passage or pPERCENT, and fail, kill or "
                                 "abort: settle.after_publish:3:kill");
        return LW_STATUS_INVALID;
    }
    struct point *point = get_point(faults, name);
    struct rule *rule = point ? lw_alloc(sizeof *rule) : NULL;
    if (!rule) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    *rule = parsed;
    rule->next = point->rules;
    point->rules = rule;
    return LW_STATUS_OK;
}

enum lw_status
lw_faults_create(const char *rules, uint64_t seed, struct lw_faults **ret_faults,
                 struct lw_error *ret_error)
{
    struct lw_faults *faults = lw_alloc(sizeof *faults);
    if (!faults) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    pthread_mutex_init(&faults->mutex, NULL);
    lw_map_init(&faults->points, seed);
    faults->random_state = seed;
    while (*rules) {
        size_t size = strcspn(rules, ",");
        enum lw_status status = add_rule(faults, (struct lw_bytes){ rules, size }, ret_error);
        if (status != LW_STATUS_OK) {
            lw_faults_destroy(faults);
            return status;
        }
        rules += size + (rules[size] == ',');
    }
    *ret_faults = faults;
    return LW_STATUS_OK;
}

void
lw_faults_destroy(struct lw_faults *faults)
{
    if (!faults) {
        return;
    }
    const struct lw_map_entry *entry = NULL;
    while ((entry = lw_map_next(&faults->points, entry))) {
        struct point *point = entry->value;
        while (point->rules) {
            struct rule *rule = point->rules;
            point->rules = rule->next;
            lw_free(rule);
        }
        lw_free(point);
    }
    lw_map_deinit(&faults->points);
    pthread_mutex_destroy(&faults->mutex);
    lw_free(faults);
}

/* -- Passages ------------------------------------------------------------------------------------ */

static bool
is_met(struct lw_faults *faults, const struct rule *rule, uint64_t passage)
{
    return rule->at ? rule->at == passage : next_random(faults) < rule->probability;
}

static bool
act(enum action action)
{
    switch (action) {
    case ACTION_KILL:
        (void)raise(SIGKILL);
        break;
    case ACTION_ABORT:
        abort();
    case ACTION_FAIL:
        break;
    }
    return true;
}

bool
lw_faults_hit(struct lw_faults *faults, const char *name)
{
    bool must_fail = false;
    pthread_mutex_lock(&faults->mutex);
    struct point *point = get_point(faults, lw_bytes_of(name));
    uint64_t passage = point ? ++point->count : 0;
    for (const struct rule *rule = point ? point->rules : NULL; rule; rule = rule->next) {
        if (is_met(faults, rule, passage)) {
            must_fail = act(rule->action);
        }
    }
    pthread_mutex_unlock(&faults->mutex);
    return must_fail;
}

/* The constness of a table is that of its rules; counts change under the mutex. */
static pthread_mutex_t *
mutex_of(const struct lw_faults *faults)
{
    return (pthread_mutex_t *)(uintptr_t)&faults->mutex;
}

uint64_t
lw_faults_count(const struct lw_faults *faults, const char *name)
{
    pthread_mutex_lock(mutex_of(faults));
    const struct point *point = lw_map_get(&faults->points, lw_bytes_of(name));
    uint64_t count = point ? point->count : 0;
    pthread_mutex_unlock(mutex_of(faults));
    return count;
}

void
lw_faults_each(const struct lw_faults *faults,
               void (*fn)(const char *name, uint64_t count, void *user), void *user)
{
    pthread_mutex_lock(mutex_of(faults));
    const struct lw_map_entry *entry = NULL;
    while ((entry = lw_map_next(&faults->points, entry))) {
        const struct point *point = entry->value;
        if (point->count) {
            fn(entry->key, point->count, user);
        }
    }
    pthread_mutex_unlock(mutex_of(faults));
}
