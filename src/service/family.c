/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A family of priority topics, registered by one call: prefix_level or prefix_level_sublevel, the
 * priority is level + sublevel, and the retry topic of a level may be one of its own sublevels.
 * Everything is checked before the first subscription is made, and all of them are made or none.
 * One engine serves the whole family.
 */
#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "service/load.h"
#include "service/registry.h"

enum { FAMILY_MAX = 4096, TOPIC_MAX = 249 };

struct family {
    struct lw_family_options options;
    struct lw_subscription_options common;
    struct lw_subscription_options *members;
    char (*topics)[TOPIC_MAX + 1];
    size_t count;
};

/* -- Checks ------------------------------------------------------------------------------------ */

static enum lw_status
check_pair(const char *what, const struct lw_level *first, const struct lw_level *second,
           struct lw_error *ret_error)
{
    if (strcasecmp(first->name, second->name) == 0) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "", "the %s \"%s\" is there twice",
                            what, second->name);
    }
    if (first->value == second->value) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "the %ss \"%s\" and \"%s\" have the same value", what, first->name,
                            second->name);
    }
    return LW_STATUS_OK;
}

static enum lw_status
check_names(const char *what, const struct lw_level *levels, size_t count,
            struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_OK;
    for (size_t i = 0; i < count && status == LW_STATUS_OK; i++) {
        if (!levels[i].name || !levels[i].name[0]) {
            return lw_error_set(ret_error, LW_STATUS_INVALID, "", "a %s has no name", what);
        }
        for (size_t k = 0; k < i && status == LW_STATUS_OK; k++) {
            status = check_pair(what, &levels[k], &levels[i], ret_error);
        }
    }
    return status;
}

static int64_t
smallest_gap(const struct lw_family_options *options)
{
    int64_t gap = INT64_MAX;
    for (size_t i = 0; i < options->level_count; i++) {
        for (size_t k = 0; k < i; k++) {
            int64_t difference = (int64_t)options->levels[i].value -
                                 (int64_t)options->levels[k].value;
            difference = difference < 0 ? -difference : difference;
            gap = difference < gap ? difference : gap;
        }
    }
    return gap;
}

/* Levels must stay apart: the largest sublevel of one below the next level. */
static enum lw_status
check_sublevels(const struct lw_family_options *options, struct lw_error *ret_error)
{
    int64_t gap = smallest_gap(options);
    for (size_t i = 0; i < options->sublevel_count; i++) {
        const struct lw_level *sublevel = &options->sublevels[i];
        if (sublevel->value < 0) {
            return lw_error_set(ret_error, LW_STATUS_INVALID, "E0305",
                                "the sublevel \"%s\" is negative: %d", sublevel->name,
                                sublevel->value);
        }
        if (sublevel->value >= gap) {
            enum lw_status status = lw_error_set(ret_error, LW_STATUS_INVALID, "E0305",
                                                 "priorities of two levels overlap: the "
                                                 "sublevel \"%s\" (%d) is not smaller than "
                                                 "the gap between levels (%lld)",
                                                 sublevel->name, sublevel->value,
                                                 (long long)gap);
            lw_error_help(ret_error, "use levels that are further apart");
            return status;
        }
    }
    return LW_STATUS_OK;
}

static enum lw_status
check_retry(const struct family *family, struct lw_error *ret_error)
{
    const char *wanted = family->options.retry_sublevel;
    bool is_found = false;
    if (!wanted) {
        return LW_STATUS_OK;
    }
    if (family->common.retry.topic) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "retry_sublevel and retry.topic were both given");
    }
    for (size_t i = 0; i < family->options.sublevel_count; i++) {
        is_found = is_found || strcasecmp(wanted, family->options.sublevels[i].name) == 0;
    }
    if (!is_found) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "the retry sublevel \"%s\" is none of the sublevels", wanted);
    }
    return LW_STATUS_OK;
}

static enum lw_status
check(const struct family *family, struct lw_error *ret_error)
{
    const struct lw_family_options *options = &family->options;
    if (!options->prefix || !options->prefix[0]) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "", "a family needs a prefix");
    }
    if (options->level_count == 0 || !options->levels ||
        (options->sublevel_count > 0 && !options->sublevels)) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "", "a family needs a level");
    }
    if (options->level_count > FAMILY_MAX || options->sublevel_count > FAMILY_MAX ||
        family->count > FAMILY_MAX) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "a family has more than %d topics", FAMILY_MAX);
    }
    enum lw_status status = check_names("level", options->levels, options->level_count,
                                        ret_error);
    if (status == LW_STATUS_OK) {
        status = check_names("sublevel", options->sublevels, options->sublevel_count,
                             ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = check_sublevels(options, ret_error);
    }
    return status == LW_STATUS_OK ? check_retry(family, ret_error) : status;
}

/* -- Members ----------------------------------------------------------------------------------- */

/* prefix_level[_sublevel], the words in lower case; false when it is too long for a topic. */
static bool
write_topic(const char *prefix, const char *level, const char *sublevel,
            char out[TOPIC_MAX + 1])
{
    struct lw_text text;
    lw_text_init(&text);
    lw_text_format(&text, "%s_%s%s%s", prefix, level, sublevel ? "_" : "",
                   sublevel ? sublevel : "");
    bool is_good = !text.is_failed && text.size <= TOPIC_MAX;
    if (is_good) {
        lw_text_copy(out, TOPIC_MAX + 1, text.data);
        for (char *c = out + strlen(prefix); *c; c++) {
            *c = (char)tolower((unsigned char)*c);
        }
    }
    lw_text_deinit(&text);
    return is_good;
}

static bool
write_member(struct family *family, size_t level, size_t sublevel)
{
    const struct lw_family_options *options = &family->options;
    bool has_sublevels = options->sublevels && options->sublevel_count > 0;
    size_t per_level = has_sublevels ? options->sublevel_count : 1;
    size_t index = level * per_level + sublevel;
    struct lw_subscription_options *member = &family->members[index];
    lw_assert(index < family->count);
    const struct lw_level *low = has_sublevels ? &options->sublevels[sublevel] : NULL;
    *member = family->common;
    member->topic = family->topics[index];
    member->priority = options->levels[level].value + (low ? low->value : 0);
    for (size_t i = 0; options->retry_sublevel && has_sublevels && i < per_level; i++) {
        if (strcasecmp(options->retry_sublevel, options->sublevels[i].name) == 0) {
            member->retry.topic = family->topics[level * per_level + i];
        }
    }
    return write_topic(options->prefix, options->levels[level].name, low ? low->name : NULL,
                       family->topics[index]);
}

static enum lw_status
write_members(struct family *family, struct lw_error *ret_error)
{
    size_t per_level = family->options.sublevel_count ? family->options.sublevel_count : 1;
    family->members = lw_alloc_array(family->count, sizeof *family->members);
    family->topics = lw_alloc_array(family->count, sizeof *family->topics);
    if (!family->members || !family->topics) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    for (size_t i = 0; i < family->count; i++) {
        if (!write_member(family, i / per_level, i % per_level)) {
            return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                                "a topic of the family \"%s\" is longer than %d characters",
                                family->options.prefix, TOPIC_MAX);
        }
    }
    return LW_STATUS_OK;
}

/* -- The call ---------------------------------------------------------------------------------- */

static enum lw_status
adopt(struct family *family, const struct lw_family_options *options,
      const struct lw_subscription_options *common, struct lw_error *ret_error)
{
    if (!options || options->size == 0 || options->size > sizeof family->options) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "the options were not started by lw_family_options_init");
    }
    lw_family_options_init(&family->options);
    memcpy(&family->options, options, options->size);
    size_t per_level = options->sublevel_count ? options->sublevel_count : 1;
    family->count = options->level_count * per_level;
    return lw_subscription_options_adopt(common, &family->common, ret_error);
}

enum lw_status
lw_dispatcher_subscribe_family(struct lw_dispatcher *dispatcher,
                               const struct lw_family_options *options,
                               const struct lw_subscription_options *common,
                               struct lw_error *ret_error)
{
    struct family family = { .count = 0 };
    struct lw_engine *engine = NULL;
    enum lw_status status = lw_service_check_new(dispatcher, ret_error);
    if (status == LW_STATUS_OK) {
        status = adopt(&family, options, common, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = check(&family, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = write_members(&family, ret_error);
    }
    if (status == LW_STATUS_OK) {
        struct lw_engine_request request = { .name = options->prefix,
                                             .options = &family.common };
        status = lw_registry_engine(dispatcher, &request, &engine, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = lw_service_subscribe(dispatcher, family.members, family.count, engine,
                                      ret_error);
    }
    lw_free(family.members);
    lw_free(family.topics);
    return status;
}
