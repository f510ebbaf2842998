/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Priority families: the maps of a matrix and their rules. A topic's priority is the sum of its
 * levels, so strictness between the levels of the first map holds only if the largest number of
 * the second stays below the smallest gap of the first.
 */
#include <ctype.h>
#include <string.h>

#include "service/config_build.h"

enum { LEVELS_MAX = 1000 };

static char *
lower_case(const char *name, struct lw_config_arena *arena)
{
    char *copy = lw_config_arena_text(arena, name, strlen(name));
    for (char *at = copy; at && *at; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    return copy;
}

static const struct lw_config_level *
find_level(const struct lw_config_level *levels, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(levels[i].name, name) == 0) {
            return &levels[i];
        }
    }
    return NULL;
}

static bool
read_level(struct lw_config_build *build, const struct lw_node *node,
           struct lw_config_level *levels, size_t count)
{
    char *name = lower_case(node->key, build->arena);
    if (!name || !lw_text_to_int(node->text, &levels[count].value)) {
        return false;
    }
    const struct lw_config_level *twin = find_level(levels, count, name);
    if (twin) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0303", &node->key_place,
            "the level \"%s\" is there twice: names are lower-cased", name);
        lw_diagnostic_show(item, &twin->node->key_place);
        return false;
    }
    levels[count].name = name;
    levels[count].node = node;
    return true;
}

static bool
read_map(struct lw_config_build *build, const struct lw_node *map,
         struct lw_config_family *family)
{
    size_t room = 0;
    for (const struct lw_node *node = map->first; node; node = node->next) {
        room++;
    }
    if (room > LEVELS_MAX) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0304", &map->key_place,
                           "\"%s\" has more than 1,000 levels", map->key);
        return false;
    }
    size_t at = family->map_count;
    struct lw_config_level *levels = lw_config_arena_array(build->arena, room + 1,
                                                           sizeof(levels[0]));
    family->levels[at] = levels;
    family->maps[at] = map;
    for (const struct lw_node *node = map->first; levels && node; node = node->next) {
        if (node->is_bad || !read_level(build, node, levels, family->counts[at])) {
            return false;
        }
        family->counts[at]++;
    }
    family->map_count++;
    return levels != NULL;
}

static const struct lw_config_level *
extreme(const struct lw_config_level *levels, size_t count, bool is_largest)
{
    const struct lw_config_level *best = &levels[0];
    for (size_t i = 1; i < count; i++) {
        if (is_largest ? levels[i].value > best->value : levels[i].value < best->value) {
            best = &levels[i];
        }
    }
    return best;
}

/* The next larger level, equal ones (but itself) included; NULL for the largest. */
static const struct lw_config_level *
next_level(const struct lw_config_level *levels, size_t count,
           const struct lw_config_level *level)
{
    const struct lw_config_level *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct lw_config_level *each = &levels[i];
        bool is_after = each->value > level->value ||
                        (each->value == level->value && each > level);
        if (is_after && (!best || each->value < best->value)) {
            best = each;
        }
    }
    return best;
}

/* A round number that leaves room: the next multiple of the power of ten above `largest`. */
static int64_t
suggest(int64_t level, int64_t largest)
{
    int64_t unit = 10;
    while (unit <= largest) {
        unit *= 10;
    }
    int64_t need = level + largest + 1;
    int64_t rest = need % unit;
    return rest == 0 ? need : rest > 0 ? need + unit - rest : need - rest;
}

static void
refuse_overlap(struct lw_config_build *build, const struct lw_config_family *family,
               const struct lw_config_level *low, const struct lw_config_level *high)
{
    const struct lw_config_level *largest = extreme(family->levels[1], family->counts[1], true);
    const struct lw_config_level *least = extreme(family->levels[1], family->counts[1], false);
    long long last = low->value + largest->value;
    long long first = high->value + least->value;
    struct lw_place place = lw_node_whole(largest->node);
    struct lw_diagnostic *item = NULL;
    if (last >= first) {
        item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0305", &place,
            "priorities of \"%s\" and \"%s\" overlap: %s+%s = %lld is not "
            "before %s+%s = %lld",
            low->name, high->name, low->name, largest->name, last, high->name, least->name,
            first);
    } else {
        item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0305", &place,
            "priorities of \"%s\" and \"%s\" may overlap: %s = %lld is not "
            "smaller than the gap between them",
            low->name, high->name, largest->name, (long long)largest->value);
    }
    lw_diagnostic_show(item, lw_node_name_place(high->node));
    lw_diagnostic_help(item,
                       "the largest %s (%lld) must be smaller than the gap between %ss (%lld - "
                       "%lld = %lld); use %s: %lld",
                       family->maps[1]->key, (long long)largest->value, family->maps[0]->key,
                       (long long)high->value, (long long)low->value,
                       (long long)(high->value - low->value), high->name,
                       (long long)suggest(low->value, largest->value));
}

static bool
check_negative(struct lw_config_build *build, const struct lw_config_family *family)
{
    const struct lw_config_level *least = extreme(family->levels[1], family->counts[1], false);
    if (least->value >= 0) {
        return true;
    }
    struct lw_place place = lw_node_whole(least->node);
    lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0304", &place,
                       "\"%s\" is %lld: the numbers of \"%s\" must be 0 or more", least->name,
                       (long long)least->value, family->maps[1]->key);
    return false;
}

static bool
check_gaps(struct lw_config_build *build, const struct lw_config_family *family)
{
    const struct lw_config_level *largest = extreme(family->levels[1], family->counts[1], true);
    const struct lw_config_level *low = extreme(family->levels[0], family->counts[0], false);
    const struct lw_config_level *high = NULL;
    for (; (high = next_level(family->levels[0], family->counts[0], low)) != NULL; low = high) {
        if (high->value - low->value <= largest->value) {
            refuse_overlap(build, family, low, high);
            return false;
        }
    }
    return true;
}

static bool
check_counts(struct lw_config_build *build, const struct lw_node *matrix,
             const struct lw_config_family *family)
{
    size_t product = 1;
    for (size_t i = 0; i < family->map_count; i++) {
        if (family->counts[i] == 0) {
            lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0121",
                               &family->maps[i]->key_place, "\"%s\" has no levels",
                               family->maps[i]->key);
            return false;
        }
        product *= family->counts[i];
    }
    if (family->map_count == 0 || product > LW_CONFIG_SUBSCRIPTIONS_MAX) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0304", lw_node_name_place(matrix),
            family->map_count == 0 ? "a matrix needs one or two maps of levels"
                                   : "this matrix makes more than 10,000 topics");
        lw_diagnostic_help(item, "such as level: { live: 100, batch: 200 }");
        return false;
    }
    return true;
}

bool
lw_config_family_read(struct lw_config_build *build, const struct lw_node *matrix,
                      struct lw_config_family *ret_family)
{
    struct lw_config_family family = { .matrix = matrix };
    for (const struct lw_node *map = matrix->first; map; map = map->next) {
        bool is_map = map->row && map->row->type == LW_OPTION_NUMBERS;
        if (is_map && family.map_count == LW_FAMILY_LEVELS_MAX) {
            lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0304", &map->key_place,
                               "a matrix has at most two maps of levels");
            return false;
        }
        if (is_map && (map->is_bad || !read_map(build, map, &family))) {
            return false;
        }
    }
    if (!check_counts(build, matrix, &family)) {
        return false;
    }
    *ret_family = family;
    return family.map_count < LW_FAMILY_LEVELS_MAX ||
           (check_negative(build, &family) && check_gaps(build, &family));
}
