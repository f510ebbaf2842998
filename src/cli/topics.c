/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway topics plan|create`: compares the topics that a configuration needs with the broker's,
 * and makes what is missing. What is read or replied to belongs to somebody else as a rule, so it
 * is only made with --all. Sources come first, since the others take their partitions.
 */
#include <string.h>

#include "base/alloc.h"
#include "cli/config.h"
#include "cli/connect.h"
#include "service/table.h"

enum { FLAG_ALL = LW_FLAG_OWN, FLAG_PARTITIONS, FLAG_RETENTION, FLAG_TIMEOUT };
enum { KAFKA_PARTITIONS = 8 };

const struct lw_flag lw_topics_flags[] = {
    LW_ROW_CONFIG,
    LW_ROW_SET,
    LW_ROW_PROPERTY,
    LW_ROW_ENV_FILE,
    { FLAG_ALL, "all", NULL, "also the consumed and the reply topics" },
    { FLAG_PARTITIONS, "partitions", "N",
      "of topics that follow no other (8; on Pulsar 1, of a spool its property)" },
    { FLAG_RETENTION, "retention", "DURATION", "of dead-letter topics; else the broker's" },
    { FLAG_TIMEOUT, "timeout", "DURATION", "how long a broker may take (10s)" },
    LW_ROW_JSON,
    LW_ROW_QUIET,
    LW_ROW_COLOR,
    LW_ROW_END,
};

struct topics {
    struct lw_cli *cli;
    bool has_all;
    bool is_creating;
    long long partitions; /* 0: as is usual */
    int64_t retention_ms;
    int64_t timeout_ms;
    struct lw_connect connect;
    bool *is_made; /* by need */
    int exit_code;
};

/* -- What is to be done -------------------------------------------------------------------------- */

static bool
is_source(const struct lw_need *need)
{
    return need->kind == LW_NEED_SOURCE || need->kind == LW_NEED_REPLY;
}

static bool
is_missing(const struct topics *topics, const struct lw_need *need)
{
    return need->partitions == 0 && (topics->has_all || !is_source(need));
}

/* Of a spool what its first use would make. */
static int32_t
usual_of(const struct lw_config_broker *broker)
{
    int64_t partitions = 1;
    if (broker->kind == LW_CONFIG_KAFKA) {
        return KAFKA_PARTITIONS;
    }
    for (size_t i = 0; broker->kind == LW_CONFIG_SPOOL && i < broker->property_count; i++) {
        if (strcmp(broker->properties[i].name, "partitions") == 0) {
            (void)lw_text_to_int(broker->properties[i].value, &partitions);
        }
    }
    return (int32_t)partitions;
}

static int32_t
wanted_of(const struct topics *topics, size_t index)
{
    const struct lw_need *need = &topics->connect.needs.items[index];
    int32_t followed = lw_needs_wanted(&topics->connect.needs, index);
    if (need->partitions > 0) {
        return need->partitions;
    }
    if (followed > 0 && need->kind != LW_NEED_SOURCE) {
        return followed;
    }
    return topics->partitions > 0 ? (int32_t)topics->partitions : usual_of(need->broker);
}

static const char *
action_of(const struct topics *topics, size_t index)
{
    const struct lw_need *need = &topics->connect.needs.items[index];
    int32_t followed = lw_needs_wanted(&topics->connect.needs, index);
    if (topics->is_made && topics->is_made[index]) {
        return "created";
    }
    if (!lw_config_is_remote(need->broker)) {
        return "made on first use";
    }
    if (need->partitions < 0) {
        return need->reason[0] ? need->reason : "not known";
    }
    if (need->partitions > 0) {
        bool is_small = need->kind == LW_NEED_RETRY && need->partitions < followed;
        return is_small ? "too few partitions for its source" : "there";
    }
    return is_missing(topics, need) ? "missing: create makes it"
                                    : "missing: create --all makes it";
}

/* -- Creating ------------------------------------------------------------------------------------ */

struct batch {
    struct lw_topic_info *infos;
    size_t *needs; /* by info */
    size_t count;
};

static void
fill_batch(const struct topics *topics, const struct lw_config_broker *broker, bool sources,
           struct batch *batch)
{
    batch->count = 0;
    for (size_t i = 0; i < topics->connect.needs.count; i++) {
        const struct lw_need *need = &topics->connect.needs.items[i];
        if (need->broker != broker || is_source(need) != sources || !is_missing(topics, need)) {
            continue;
        }
        bool is_dead = need->kind == LW_NEED_DEAD_LETTER;
        batch->needs[batch->count] = i;
        batch->infos[batch->count++] = (struct lw_topic_info){
            .name = need->name,
            .partitions = wanted_of(topics, i),
            .retention_ms = is_dead ? topics->retention_ms : -1
        };
    }
}

/* Says why a topic cannot be made, and keeps the exit code of the first such reason. */
static void
say_refused(struct topics *topics, const struct lw_need *need, const char *reason,
            enum lw_status status)
{
    struct lw_error error = { .status = status };
    bool is_spaceless = need->broker->kind == LW_CONFIG_PULSAR && status == LW_STATUS_NOT_FOUND;
    lw_cli_say("laneway topics: cannot create \"%s\": %s%s", need->name, reason,
               is_spaceless ? "\nhelp: correct the name, or make it: " LW_CLI_MAKE_NAMESPACE
                            : "");
    if (topics->exit_code == LW_EXIT_OK) {
        topics->exit_code = lw_error_exit_code(&error);
    }
}

/* What the broker would not even look up. */
static void
say_unknown(struct topics *topics)
{
    for (size_t i = 0; i < topics->connect.needs.count; i++) {
        const struct lw_need *need = &topics->connect.needs.items[i];
        bool is_wanted = topics->has_all || !is_source(need);
        if (need->partitions < 0 && need->reason[0] && is_wanted) {
            say_refused(topics, need, need->reason, need->status);
        }
    }
}

static void
read_batch(struct topics *topics, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct lw_topic_info *info = &batch->infos[i];
        struct lw_need *need = &topics->connect.needs.items[batch->needs[i]];
        if (info->status == LW_STATUS_OK || info->status == LW_STATUS_ALREADY) {
            need->partitions = info->partitions;
            topics->is_made[batch->needs[i]] = info->status == LW_STATUS_OK;
            continue;
        }
        say_refused(topics, need, info->reason, info->status);
        need->partitions = -1;
        lw_text_copy(need->reason, sizeof need->reason, "could not be created");
    }
}

static void
make(struct topics *topics, struct lw_connect_broker *broker, bool sources, struct batch *batch)
{
    struct lw_error error = { 0 };
    if (!broker->broker || broker->error.status != LW_STATUS_OK ||
        !lw_config_is_remote(broker->config)) {
        return;
    }
    fill_batch(topics, broker->config, sources, batch);
    if (batch->count == 0) {
        return;
    }
    if (lw_connect_make(&topics->connect, broker, batch->infos, batch->count, &error)) {
        topics->exit_code = lw_cli_fail(topics->cli, &error);
        return;
    }
    read_batch(topics, batch);
}

static bool
create_all(struct topics *topics)
{
    size_t room = topics->connect.needs.count + 1;
    struct batch batch = { .infos = lw_alloc_array(room, sizeof *batch.infos),
                           .needs = lw_alloc_array(room, sizeof *batch.needs) };
    topics->is_made = lw_alloc_array(room, sizeof *topics->is_made);
    bool is_good = batch.infos && batch.needs && topics->is_made;
    say_unknown(topics);
    for (int sources = 1; is_good && sources >= 0; sources--) {
        for (size_t i = 0; i < topics->connect.broker_count; i++) {
            make(topics, &topics->connect.brokers[i], sources, &batch);
        }
    }
    lw_free(batch.infos);
    lw_free(batch.needs);
    return is_good;
}

/* -- Output -------------------------------------------------------------------------------------- */

static void
print(const struct topics *topics, struct lw_text *out)
{
    static const char *const names[] = { "BROKER", "TOPIC", "USE", "PARTITIONS", "STATE" };
    struct lw_table table;
    lw_table_init(&table, "lllrl");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        lw_table_add(&table, "%s", names[i]);
    }
    for (size_t i = 0; i < topics->connect.needs.count; i++) {
        const struct lw_need *need = &topics->connect.needs.items[i];
        lw_table_add(&table, "%s", need->broker->name);
        lw_table_add(&table, "%s", need->name);
        lw_table_add(&table, "%s", lw_need_kind_name(need->kind));
        lw_table_add(&table, "%d", wanted_of(topics, i));
        lw_table_add(&table, "%s", action_of(topics, i));
    }
    lw_table_print(&table, "", out);
    lw_table_deinit(&table);
}

static void
print_json(const struct topics *topics, struct lw_text *out)
{
    struct lw_json json;
    lw_json_init(&json, out);
    lw_json_array(&json);
    for (size_t i = 0; i < topics->connect.needs.count; i++) {
        const struct lw_need *need = &topics->connect.needs.items[i];
        lw_json_object(&json);
        lw_json_key(&json, "broker");
        lw_json_string(&json, need->broker->name);
        lw_json_key(&json, "topic");
        lw_json_string(&json, need->name);
        lw_json_key(&json, "use");
        lw_json_string(&json, lw_need_kind_name(need->kind));
        lw_json_key(&json, "found");
        lw_json_int(&json, need->partitions);
        lw_json_key(&json, "partitions");
        lw_json_int(&json, wanted_of(topics, i));
        lw_json_key(&json, "state");
        lw_json_string(&json, action_of(topics, i));
        lw_json_object_end(&json);
    }
    lw_json_array_end(&json);
    lw_text_append_char(out, '\n');
}

static void
say_unreachable(const struct topics *topics)
{
    for (size_t i = 0; i < topics->connect.broker_count; i++) {
        const struct lw_error *error = &topics->connect.brokers[i].error;
        if (error->status != LW_STATUS_OK) {
            (void)lw_cli_fail(topics->cli, error);
        }
    }
}

static int
work(struct topics *topics, const struct lw_config *config)
{
    lw_connect_run(&topics->connect, config, topics->timeout_ms, NULL);
    topics->exit_code = topics->connect.exit_code;
    say_unreachable(topics);
    if (topics->is_creating && !create_all(topics)) {
        return lw_cli_fail_memory();
    }
    if (topics->cli->is_json) {
        print_json(topics, &topics->cli->out);
    } else {
        print(topics, &topics->cli->out);
    }
    return topics->exit_code;
}

/* -- The command ----------------------------------------------------------------------------------- */

static bool
read_duration(struct lw_cli *cli, const char *name, int64_t *ret_ms)
{
    const char *why = NULL;
    if (lw_text_to_duration_ms(cli->value, ret_ms, &why) && *ret_ms > 0) {
        return true;
    }
    cli->exit_code = lw_cli_usage(cli, "--%s \"%s\" is no duration such as 10s or 720h", name,
                                  cli->value);
    return false;
}

static bool
read_flags(struct topics *topics)
{
    struct lw_cli *cli = topics->cli;
    bool is_good = true;
    int id;
    while (is_good && (id = lw_cli_next(cli)) != LW_FLAG_END) {
        switch (id) {
        case FLAG_ALL:
            topics->has_all = true;
            break;
        case FLAG_PARTITIONS:
            is_good = lw_cli_number(cli, "partitions", 1, 100000, &topics->partitions);
            break;
        case FLAG_RETENTION:
            is_good = read_duration(cli, "retention", &topics->retention_ms);
            break;
        case FLAG_TIMEOUT:
            is_good = read_duration(cli, "timeout", &topics->timeout_ms);
            break;
        default:
            return false;
        }
    }
    return is_good;
}

int
lw_command_topics(struct lw_cli *cli)
{
    struct topics topics = { .cli = cli, .retention_ms = -1, .timeout_ms = 10000 };
    if (!read_flags(&topics)) {
        return cli->exit_code;
    }
    const char *verb = cli->argument_count > 0 ? cli->arguments[0] : "";
    topics.is_creating = strcmp(verb, "create") == 0;
    if (!topics.is_creating && strcmp(verb, "plan") != 0) {
        return lw_cli_usage(cli, "say \"plan\" or \"create\"");
    }
    struct lw_config *config = lw_cli_config_require(cli, 1);
    if (!config) {
        return cli->exit_code;
    }
    int exit_code = work(&topics, config);
    lw_connect_deinit(&topics.connect);
    lw_free(topics.is_made);
    lw_config_destroy(config);
    return exit_code;
}
