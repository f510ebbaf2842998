/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of option rows: reading them from text, storing, printing, defaults. The walk over
 * nested tables is in option_walk.c. Pure; the caller owns all text.
 */
#include "base/option.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { WORD_BYTES_MAX = 64 };

bool
lw_option_is_scalar(const struct lw_option *row)
{
    return row->type >= LW_OPTION_BOOL && row->type <= LW_OPTION_ENUM;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Cuts a trailing "# comment" and the blanks: words from the environment may carry one. */
static void
copy_word(char out[WORD_BYTES_MAX], const char *text)
{
    while (is_blank(*text)) {
        text++;
    }
    size_t length = strcspn(text, "#");
    while (length > 0 && is_blank(text[length - 1])) {
        length--;
    }
    if (length >= WORD_BYTES_MAX) {
        length = WORD_BYTES_MAX - 1;
    }
    memcpy(out, text, length);
    out[length] = '\0';
}

static const struct lw_option_word *
find_word(const struct lw_option_word *words, const char *text)
{
    char word[WORD_BYTES_MAX];
    copy_word(word, text);
    for (; words && words->word; words++) {
        if (strcmp(words->word, word) == 0) {
            return words;
        }
    }
    return NULL;
}

static enum lw_option_fault
parse_bool(const struct lw_option *row, const char *text, int64_t *ret_value)
{
    char word[WORD_BYTES_MAX];
    copy_word(word, text);
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
        *ret_value = word[0] == 't';
        return LW_OPTION_FINE;
    }
    if (row->type == LW_OPTION_TRISTATE && strcmp(word, "default") == 0) {
        *ret_value = LW_DEFAULT;
        return LW_OPTION_FINE;
    }
    return LW_OPTION_WRONG_TYPE;
}

static bool
is_in_range(const struct lw_option *row, double value)
{
    return row->min >= row->max || (value >= row->min && value <= row->max);
}

/* The range of the field itself: nothing may be cut when it is stored. */
static bool
fits(const struct lw_option *row, int64_t value)
{
    bool is_signed = row->type == LW_OPTION_INT || row->type == LW_OPTION_DURATION;
    int64_t low = is_signed ? INT64_MIN : 0;
    int64_t high = INT64_MAX;
    if (row->size == sizeof(int32_t)) {
        low = is_signed ? INT32_MIN : 0;
        high = is_signed ? INT32_MAX : UINT32_MAX;
    }
    return value >= low && value <= high && is_in_range(row, (double)value);
}

static bool
is_bare_number(const char *text)
{
    size_t length = strspn(text, "0123456789");
    if (length > 0 && text[length] == '.') {
        length += 1 + strspn(text + length + 1, "0123456789");
    }
    return length > 0 && text[length] == '\0';
}

static enum lw_option_fault
parse_measure(const struct lw_option *row, const char *text, int64_t *ret_value)
{
    const char *why = NULL;
    if (strcmp(text, "0") == 0) {
        *ret_value = 0;
    } else if (is_bare_number(text)) {
        return LW_OPTION_NEEDS_UNIT;
    } else if (row->type == LW_OPTION_BYTES ? !lw_text_to_size(text, ret_value, &why)
                                            : !lw_text_to_duration_ms(text, ret_value, &why)) {
        return LW_OPTION_WRONG_TYPE;
    }
    return fits(row, *ret_value) ? LW_OPTION_FINE : LW_OPTION_OUT_OF_RANGE;
}

static enum lw_option_fault
parse_whole(const struct lw_option *row, const char *text, int64_t *ret_value)
{
    if (!lw_text_to_int(text, ret_value)) {
        size_t sign = *text == '-' ? 1 : 0;
        size_t digits = strspn(text + sign, "0123456789");
        bool is_huge = digits > 0 && text[sign + digits] == '\0';
        return is_huge ? LW_OPTION_OUT_OF_RANGE : LW_OPTION_WRONG_TYPE;
    }
    return fits(row, *ret_value) ? LW_OPTION_FINE : LW_OPTION_OUT_OF_RANGE;
}

static enum lw_option_fault
parse_real(const struct lw_option *row, const char *text, double *ret_value)
{
    char *end = NULL;
    if (strspn(text, "0123456789.+-eE") != strlen(text)) {
        return LW_OPTION_WRONG_TYPE;
    }
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !isfinite(value)) {
        return LW_OPTION_WRONG_TYPE;
    }
    *ret_value = value;
    return is_in_range(row, value) ? LW_OPTION_FINE : LW_OPTION_OUT_OF_RANGE;
}

static enum lw_option_fault
parse_word(const struct lw_option *row, const char *text, int64_t *ret_value)
{
    const struct lw_option_word *word = find_word(row->words, text);
    if (!word) {
        return LW_OPTION_UNKNOWN_WORD;
    }
    if (word->is_later) {
        return LW_OPTION_LATER_WORD;
    }
    *ret_value = word->value;
    return LW_OPTION_FINE;
}

static enum lw_option_fault
parse_number(const struct lw_option *row, const char *text, int64_t *ret_value)
{
    const struct lw_option_word *word = find_word(row->words, text);
    if (word) {
        *ret_value = word->value;
        return LW_OPTION_FINE;
    }
    if (row->type == LW_OPTION_DURATION || row->type == LW_OPTION_BYTES) {
        return parse_measure(row, text, ret_value);
    }
    return parse_whole(row, text, ret_value);
}

enum lw_option_fault
lw_option_parse(const struct lw_option *row, const char *text, union lw_option_value *ret_value)
{
    union lw_option_value value = { .number = 0 };
    enum lw_option_fault fault = LW_OPTION_FINE;
    if (row->type == LW_OPTION_TEXT) {
        value.text = text;
    } else if (row->type == LW_OPTION_DOUBLE) {
        fault = parse_real(row, text, &value.real);
    } else if (row->type == LW_OPTION_ENUM) {
        fault = parse_word(row, text, &value.number);
    } else if (row->type == LW_OPTION_BOOL || row->type == LW_OPTION_TRISTATE) {
        fault = parse_bool(row, text, &value.number);
    } else {
        lw_assert(lw_option_is_scalar(row));
        fault = parse_number(row, text, &value.number);
    }
    if (fault == LW_OPTION_FINE) {
        *ret_value = value;
    }
    return fault;
}

void
lw_option_store(const struct lw_option *row, union lw_option_value value, void *base,
                ptrdiff_t offset)
{
    char *field = (char *)base + offset;
    lw_assert(lw_option_is_scalar(row));
    if (row->type == LW_OPTION_TEXT) {
        memcpy(field, &value.text, sizeof(value.text));
    } else if (row->type == LW_OPTION_DOUBLE) {
        memcpy(field, &value.real, sizeof(value.real));
    } else if (row->size == sizeof(int64_t)) {
        memcpy(field, &value.number, sizeof(value.number));
    } else if (row->size == sizeof(int32_t)) {
        uint32_t number = (uint32_t)value.number;
        memcpy(field, &number, sizeof(number));
    } else {
        lw_assert(row->size == sizeof(bool));
        bool is_set = value.number != 0;
        memcpy(field, &is_set, sizeof(is_set));
    }
}

static int64_t
load_number(const struct lw_option *row, const void *field)
{
    if (row->size == sizeof(int64_t)) {
        int64_t number = 0;
        memcpy(&number, field, sizeof(number));
        return number;
    }
    if (row->size == sizeof(int32_t)) {
        uint32_t number = 0;
        memcpy(&number, field, sizeof(number));
        return row->type == LW_OPTION_UINT ? (int64_t)number : (int64_t)(int32_t)number;
    }
    bool is_set = false;
    memcpy(&is_set, field, sizeof(is_set));
    return is_set;
}

static const char *
word_of(const struct lw_option *row, int64_t value)
{
    for (const struct lw_option_word *word = row->words; word && word->word; word++) {
        if (word->value == value && !word->is_later) {
            return word->word;
        }
    }
    return NULL;
}

static void
format_number(const struct lw_option *row, int64_t value, struct lw_text *out)
{
    char measure[64];
    const char *word = word_of(row, value);
    if (word) {
        lw_text_append(out, word);
    } else if (row->type == LW_OPTION_TRISTATE && value == LW_DEFAULT) {
        lw_text_append(out, "default");
    } else if (row->type == LW_OPTION_BOOL || row->type == LW_OPTION_TRISTATE) {
        lw_text_append(out, value ? "true" : "false");
    } else if (row->type == LW_OPTION_DURATION) {
        lw_text_from_duration_ms(value, measure, sizeof(measure));
        lw_text_append(out, measure);
    } else if (row->type == LW_OPTION_BYTES) {
        lw_text_from_size(value, measure, sizeof(measure));
        lw_text_append(out, measure);
    } else {
        lw_text_format(out, "%lld", (long long)value);
    }
}

static size_t
load_count(const struct lw_option *row, const void *base, ptrdiff_t offset)
{
    size_t count = 0;
    if (row->count_offset > 0) {
        const char *beside = (const char *)base + offset - row->offset + row->count_offset;
        memcpy(&count, beside, sizeof(count));
    }
    return count;
}

static void
format_list(const struct lw_option *row, const void *field, size_t count, struct lw_text *out)
{
    const char *const *texts = NULL;
    const int64_t *durations = NULL;
    memcpy(row->type == LW_OPTION_TEXTS ? (void *)&texts : (void *)&durations, field,
           sizeof(texts));
    lw_text_append_char(out, '[');
    for (size_t i = 0; texts ? texts[i] != NULL : durations && i < count; i++) {
        char measure[64];
        lw_text_append(out, i > 0 ? ", " : "");
        if (durations) {
            lw_text_from_duration_ms(durations[i], measure, sizeof(measure));
        }
        lw_text_append(out, texts ? texts[i] : measure);
    }
    lw_text_append_char(out, ']');
}

void
lw_option_format(const struct lw_option *row, const void *base, ptrdiff_t offset,
                 struct lw_text *out)
{
    const char *field = (const char *)base + offset;
    if (row->type == LW_OPTION_TEXT) {
        const char *text = NULL;
        memcpy(&text, field, sizeof(text));
        lw_text_append(out, text ? text : "-");
    } else if (row->type == LW_OPTION_DOUBLE) {
        double real = 0;
        memcpy(&real, field, sizeof(real));
        lw_text_format(out, "%g", real);
    } else if (row->type == LW_OPTION_TEXTS || row->type == LW_OPTION_DURATIONS) {
        format_list(row, field, load_count(row, base, offset), out);
    } else {
        format_number(row, load_number(row, field), out);
    }
}

static void
append_words(const struct lw_option_word *words, const char *first, struct lw_text *out)
{
    const char *separator = first;
    for (; words && words->word; words++) {
        if (!words->is_alias && !words->is_later) {
            lw_text_format(out, "%s%s", separator, words->word);
            separator = " | ";
        }
    }
}

void
lw_option_type_name(const struct lw_option *row, struct lw_text *out)
{
    static const char *const names[] = {
        [LW_OPTION_END] = "",
        [LW_OPTION_BOOL] = "true | false",
        [LW_OPTION_TRISTATE] = "true | false",
        [LW_OPTION_INT] = "whole number",
        [LW_OPTION_UINT] = "whole number",
        [LW_OPTION_DOUBLE] = "number",
        [LW_OPTION_DURATION] = "duration",
        [LW_OPTION_BYTES] = "size",
        [LW_OPTION_TEXT] = "text",
        [LW_OPTION_ENUM] = "",
        [LW_OPTION_TEXTS] = "list of texts",
        [LW_OPTION_DURATIONS] = "list of durations",
        [LW_OPTION_PROPERTIES] = "names with values",
        [LW_OPTION_NUMBERS] = "names with whole numbers",
        [LW_OPTION_GROUP] = "section",
        [LW_OPTION_INCLUDE] = "",
        [LW_OPTION_MAP] = "named sections",
        [LW_OPTION_LIST] = "list",
        [LW_OPTION_ANY] = "anything",
        [LW_OPTION_LATER] = "not in this version",
    };
    lw_text_append(out, names[row->type]);
    append_words(row->words, row->type == LW_OPTION_ENUM ? "" : " | ", out);
    if (row->off_word) {
        lw_text_format(out, " | %s", row->off_word);
    }
}

void
lw_option_init(const struct lw_option *rows, void *base)
{
    struct lw_option_walk walk;
    lw_option_walk_start(&walk, rows, LW_WALK_STRUCT);
    while (lw_option_walk_next(&walk)) {
        union lw_option_value value;
        if (walk.row->initial && lw_option_is_scalar(walk.row) && !walk.row->is_unbound) {
            enum lw_option_fault fault = lw_option_parse(walk.row, walk.row->initial, &value);
            lw_assert(fault == LW_OPTION_FINE);
            lw_option_store(walk.row, value, base, walk.offset);
        }
    }
}

void
lw_option_copy(const struct lw_option *rows, void *to, const void *from)
{
    struct lw_option_walk walk;
    lw_option_walk_start(&walk, rows, LW_WALK_STRUCT);
    while (lw_option_walk_next(&walk)) {
        const struct lw_option *row = walk.row;
        if (row->is_unbound) {
            continue;
        }
        if (row->size > 0) {
            memcpy((char *)to + walk.offset, (const char *)from + walk.offset, row->size);
        }
        if (row->count_offset > 0) {
            ptrdiff_t beside = walk.offset - row->offset + row->count_offset;
            memcpy((char *)to + beside, (const char *)from + beside, sizeof(size_t));
        }
        if (row->off_word) {
            ptrdiff_t off = walk.offset - row->offset + row->off_offset;
            memcpy((char *)to + off, (const char *)from + off, sizeof(bool));
        }
    }
}

bool
lw_option_is_near(const char *name, const char *candidate, size_t *ret_distance)
{
    size_t length = strlen(name);
    size_t other = strlen(candidate);
    size_t gap = length > other ? length - other : other - length;
    size_t limit = length / 3 > 2 ? length / 3 : 2;
    if (gap > limit || length >= WORD_BYTES_MAX || other >= WORD_BYTES_MAX) {
        return false;
    }
    size_t distance = lw_text_distance(name, candidate);
    if (distance > limit || distance >= length) {
        return false;
    }
    *ret_distance = distance;
    return true;
}

const char *
lw_option_nearest(const struct lw_option *rows, const char *name)
{
    struct lw_option_walk walk;
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    lw_option_walk_start(&walk, rows, LW_WALK_FLAT);
    while (lw_option_walk_next(&walk)) {
        size_t distance = 0;
        if (walk.row->type != LW_OPTION_LATER && walk.row->name[0] != '*' &&
            lw_option_is_near(name, walk.row->name, &distance) && distance < best_distance) {
            best = walk.row->name;
            best_distance = distance;
        }
    }
    return best;
}
