/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confirms orders such as {"id": 7}. {"id": 7, "fails": 1} fails once before it works. A program
 * that speaks lines, with a JSON library and nothing of Laneway's:
 *   cc -o confirm-c confirm.c -ljansson
 * A C function in the service itself, or in its worker processes, is faster: see hello.c.
 */
#define _GNU_SOURCE
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *
answer_of(const json_t *order, const json_t *message)
{
    const json_t *id = json_object_get(order, "id");
    json_int_t fails = json_integer_value(json_object_get(order, "fails"));
    char reply[64];
    if (!json_is_integer(id)) {
        return json_pack("{ss ss}", "result", "dead", "reason", "bad order: no id");
    }
    if (json_integer_value(json_object_get(message, "attempt")) <= fails) {
        return json_pack("{ss ss ss}", "result", "retry", "reason", "database timeout", "delay",
                         "10ms");
    }
    (void)snprintf(reply, sizeof reply, "{\"confirmed\":%lld}",
                   (long long)json_integer_value(id));
    return json_pack("{ss ss}", "result", "ok", "reply", reply);
}

static json_t *
handle(const json_t *message)
{
    if (json_object_get(message, "hello")) {
        return json_pack("{s{si}}", "ready", "protocol", 1);
    }
    const json_t *value = json_object_get(message, "value");
    json_t *order = json_loadb(json_string_value(value), json_string_length(value), 0, NULL);
    json_t *answer = answer_of(order, message);
    json_object_set(answer, "id", json_object_get(message, "id"));
    json_decref(order);
    return answer;
}

int
main(void)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        json_t *message = json_loads(line, JSON_ALLOW_NUL, NULL); /* a text may hold a zero */
        json_t *answer = handle(message);
        json_dumpf(answer, stdout, JSON_COMPACT);
        (void)putchar('\n');
        (void)fflush(stdout);
        json_decref(answer);
        json_decref(message);
    }
    free(line);
    return 0;
}
