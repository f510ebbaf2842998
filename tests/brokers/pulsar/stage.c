/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage of consumers' tests: broker and client together, and what is put into the topic. The
 * broker's count of violations and the count of live allocations are looked at when it is taken
 * down, so that every test on it checks both.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/alloc.h"
#include "tests/brokers/pulsar/stage.h"

struct stage stage;

int
stage_set_up(void **state)
{
    struct embedded_settings settings;
    struct lw_error error;
    (void)state;
    stage.live = lw_alloc_live();
    embedded_settings_init(&settings);
    world_init(&stage.world, "pulsar://127.0.0.1:1", NULL);
    stage.broker = embedded_create(stage.world.host, &settings);
    lw_pulsar_address_deinit(&stage.world.client.address);
    assert_int_equal(lw_pulsar_address_parse(embedded_url(stage.broker, 0),
                                             &stage.world.client.address, &error),
                     LW_STATUS_OK);
    embedded_create_topic(stage.broker, CONSUMING_TOPIC);
    return 0;
}

int
stage_tear_down(void **state)
{
    const struct embedded_counts *counts = embedded_counts(stage.broker);
    (void)state;
    if (counts->violations > 0 || counts->protocol_errors > 0) {
        fail_msg("%s %s", counts->first_violation, counts->last_error);
    }
    assert_int_equal(embedded_consumers(stage.broker, NULL), 0);
    lw_pulsar_client_deinit(&stage.world.client);
    embedded_destroy(stage.broker);
    virtual_host_settle(&stage.world.virtual_host);
    assert_int_equal(lw_alloc_live(), stage.live);
    return 0;
}

/* -- Entries --------------------------------------------------------------------------------------- */

void
stage_publish(const char *value, int32_t batch)
{
    struct embedded_publish message = { .value = lw_bytes_of(value), .batch = batch };
    (void)embedded_publish(stage.broker, CONSUMING_TOPIC, &message);
}

struct lw_pulsar_metadata
stage_metadata(void)
{
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    metadata.producer_name = lw_bytes_of("p");
    metadata.publish_time = (uint64_t)embedded_now_ms(stage.broker);
    return metadata;
}

void
stage_store(const struct lw_pulsar_metadata *metadata, struct lw_bytes body)
{
    (void)embedded_store(stage.broker, CONSUMING_TOPIC, metadata, body);
}

void
stage_chunk(const char *uuid, int32_t index, int32_t count, const char *body)
{
    struct lw_pulsar_metadata metadata = stage_metadata();
    metadata.has |= LW_PULSAR_METADATA_HAS_NUM_CHUNKS |
                    LW_PULSAR_METADATA_HAS_TOTAL_CHUNK_SIZE | LW_PULSAR_METADATA_HAS_CHUNK_ID;
    metadata.uuid = lw_bytes_of(uuid);
    metadata.num_chunks_from_msg = count;
    metadata.chunk_id = index;
    metadata.total_chunk_msg_size = count * (int32_t)strlen(body);
    stage_store(&metadata, lw_bytes_of(body));
}

/* -- Looking --------------------------------------------------------------------------------------- */

struct embedded_subscription_info
stage_subscription(const char *name)
{
    struct embedded_subscription_info info;
    assert_true(embedded_subscription(stage.broker, CONSUMING_TOPIC, name, &info));
    return info;
}

void
stage_expect_permits_agree(struct consuming *consuming, const char *subscription)
{
    int64_t theirs = stage_subscription(subscription).permits;
    int64_t ours = consuming_figures(consuming).permits_out;
    assert_int_equal(ours, theirs > 0 ? theirs : 0);
}

void
stage_fault(enum embedded_fault_kind kind, enum embedded_direction direction, int32_t type,
            uint32_t times)
{
    struct embedded_fault fault = {
        .kind = kind, .direction = direction, .type = type, .times = times
    };
    embedded_add_fault(stage.broker, &fault);
}

uint64_t
stage_count_in(enum lw_pulsar_command_type type)
{
    return embedded_counts(stage.broker)->in[type];
}
