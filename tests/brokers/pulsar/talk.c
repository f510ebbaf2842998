/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bare client: a blocking question is a loop of turns of the host and looks at the socket,
 * which is loopback, so that what the broker wrote is there at once or after a moment.
 */
#include "tests/brokers/pulsar/talk.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/support/test.h"

enum { LOOKS = 5000 };

struct embedded_settings
talk_settings(void)
{
    struct embedded_settings settings;
    embedded_settings_init(&settings);
    settings.keep_alive_ms = 0;
    settings.needs_lookup = false;
    return settings;
}

struct talk *
talk_create(const struct embedded_settings *settings)
{
    struct embedded_settings plain = talk_settings();
    struct talk *talk = calloc(1, sizeof *talk);
    virtual_host_init(&talk->virtual_host, 1);
    talk->broker = embedded_create(&talk->virtual_host.host, settings ? settings : &plain);
    for (int i = 0; i < TALKERS_MAX; i++) {
        talk->talkers[i].fd = -1;
    }
    embedded_create_topic(talk->broker, "t");
    return talk;
}

void
talk_destroy(struct talk *talk)
{
    for (int i = 0; i < TALKERS_MAX; i++) {
        if (talk->talkers[i].fd >= 0) {
            close(talk->talkers[i].fd);
            free(talk->talkers[i].in);
        }
    }
    virtual_host_settle(&talk->virtual_host);
    embedded_destroy(talk->broker);
    free(talk);
}

struct talker *
talk_dial(struct talk *talk, int number, int member)
{
    struct talker *talker = &talk->talkers[number];
    int64_t port = 0;
    assert_true(lw_text_to_int(strrchr(embedded_url(talk->broker, member), ':') + 1, &port));
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (talker->fd >= 0) {
        close(talker->fd);
        free(talker->in);
    }
    *talker = (struct talker){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    talker->in = malloc(TALK_BYTES);
    assert_int_equal(connect(talker->fd, (struct sockaddr *)&address, sizeof address), 0);
    return talker;
}

struct lw_pulsar_command
talk_connect_command(void)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_CONNECT);
    command.connect.client_version = (struct lw_bytes){ "talk", 4 };
    command.connect.protocol_version = LW_PULSAR_PROTOCOL_VERSION;
    command.connect.has = LW_PULSAR_CONNECT_HAS_FEATURE_FLAGS;
    command.connect.feature_flags.supports_auth_refresh = true;
    return command;
}

struct talker *
talk_join(struct talk *talk, int number)
{
    struct talker *talker = talk_dial(talk, number, 0);
    struct lw_pulsar_command command = talk_connect_command();
    talk_send(talk, talker, &command);
    talk_expect(talk, talker, LW_PULSAR_CONNECTED);
    return talker;
}

void
talk_send_bytes(struct talk *talk, struct talker *talker, const void *data, size_t size)
{
    const uint8_t *at = data;
    uint64_t goal = embedded_counts(talk->broker)->bytes_in + size;
    while (size > 0) {
        ssize_t count = send(talker->fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0) {
            virtual_host_settle(&talk->virtual_host);
            continue;
        }
        at += count;
        size -= (size_t)count;
    }
    virtual_host_settle(&talk->virtual_host);
    /* Loopback takes a moment; a broker that stopped reading never gets there. */
    for (int i = 0; i < 50 && embedded_counts(talk->broker)->bytes_in < goal; i++) {
        (void)poll(NULL, 0, 1);
        virtual_host_settle(&talk->virtual_host);
    }
}

void
talk_send(struct talk *talk, struct talker *talker, const struct lw_pulsar_command *command)
{
    uint8_t frame[65536];
    struct lw_proto_writer writer = lw_proto_writer_of(frame, sizeof frame);
    lw_pulsar_command_write(command, &writer);
    assert_false(lw_proto_is_overflow(&writer));
    talk_send_bytes(talk, talker, frame, writer.size);
}

/* -- Reading ---------------------------------------------------------------------------------- */

static bool
take_frame(struct talker *talker)
{
    struct lw_pulsar_scan scan = lw_pulsar_frame_scan(talker->in + talker->used,
                                                      talker->size - talker->used, TALK_BYTES);
    if (scan.state != LW_PULSAR_SCAN_FRAME) {
        return false;
    }
    talker->used += scan.size;
    talker->rest = scan.rest;
    assert_int_equal(lw_pulsar_command_decode(scan.command, &talker->command), LW_PULSAR_OK);
    return true;
}

static void
look(struct talk *talk, struct talker *talker, int wait_ms)
{
    virtual_host_settle(&talk->virtual_host);
    struct pollfd poller = { .fd = talker->fd, .events = POLLIN };
    if (poll(&poller, 1, wait_ms) == 0) {
        return;
    }
    memmove(talker->in, talker->in + talker->used, talker->size - talker->used);
    talker->size -= talker->used;
    talker->used = 0;
    ssize_t count = recv(talker->fd, talker->in + talker->size, TALK_BYTES - talker->size, 0);
    talker->is_ended = count <= 0;
    talker->size += count > 0 ? (size_t)count : 0;
}

static const struct lw_pulsar_command *
next(struct talk *talk, struct talker *talker, bool is_for_pong)
{
    for (int i = 0; i < LOOKS; i++) {
        while (take_frame(talker)) {
            if (talker->command.type != LW_PULSAR_PONG || talker->pongs_due == 0) {
                return &talker->command;
            }
            if (--talker->pongs_due == 0 && is_for_pong) {
                return NULL;
            }
        }
        if (talker->is_ended) {
            return NULL;
        }
        look(talk, talker, 1);
    }
    return NULL;
}

const struct lw_pulsar_command *
talk_expect(struct talk *talk, struct talker *talker, enum lw_pulsar_command_type type)
{
    const struct lw_pulsar_command *command = next(talk, talker, false);
    if (command == NULL) {
        fail_msg("%s instead of %s", talker->is_ended ? "the end" : "nothing",
                 lw_pulsar_command_name((int32_t)type));
        return NULL;
    }
    assert_string_equal(lw_pulsar_command_name(command->type),
                        lw_pulsar_command_name((int32_t)type));
    return command;
}

/*
 * PING is answered in order, and what the broker sends on its own accord goes out at the end of
 * a turn: after two rounds everything came that earlier commands caused.
 */
const struct lw_pulsar_command *
talk_poll(struct talk *talk, struct talker *talker)
{
    struct lw_pulsar_command ping = lw_pulsar_command_of(LW_PULSAR_PING);
    for (int round = 0; round < 2 && !talker->is_ended; round++) {
        talk_send(talk, talker, &ping);
        talker->pongs_due++;
        while (talker->pongs_due > 0 && !talker->is_ended) {
            if (next(talk, talker, true) != NULL) {
                return &talker->command;
            }
            assert_true(talker->pongs_due == 0 || talker->is_ended);
        }
    }
    return NULL;
}

void
talk_expect_end(struct talk *talk, struct talker *talker)
{
    for (int i = 0; i < LOOKS && !talker->is_ended; i++) {
        assert_false(take_frame(talker));
        look(talk, talker, 1);
    }
    assert_true(talker->is_ended);
}

void
talk_pass_ms(struct talk *talk, int64_t ms)
{
    virtual_host_pass(&talk->virtual_host, (uint64_t)ms * LW_MS + LW_MS / 4);
    virtual_host_settle(&talk->virtual_host);
}

/* -- Consuming ---------------------------------------------------------------------------------- */

static struct lw_bytes
text(const char *from)
{
    return (struct lw_bytes){ from, from == NULL ? 0 : strlen(from) };
}

struct lw_pulsar_command
talk_subscribe_command(int32_t type, uint64_t id, const char *name)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SUBSCRIBE);
    struct lw_pulsar_subscribe *it = &command.subscribe;
    it->topic = text("t");
    it->subscription = text("s");
    it->sub_type = type;
    it->consumer_id = it->request_id = id;
    it->consumer_name = text(name);
    it->initial_position = LW_PULSAR_INITIAL_EARLIEST;
    if (type == LW_PULSAR_SUB_KEY_SHARED) {
        it->has |= LW_PULSAR_SUBSCRIBE_HAS_KEY_SHARED_META;
    }
    return command;
}

void
talk_subscribe(struct talk *talk, struct talker *talker, int32_t type, uint64_t id,
               const char *name)
{
    struct lw_pulsar_command command = talk_subscribe_command(type, id, name);
    talk_send(talk, talker, &command);
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_SUCCESS)->success.request_id, id);
}

void
talk_flow(struct talk *talk, struct talker *talker, uint64_t id, uint32_t permits)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_FLOW);
    command.flow.consumer_id = id;
    command.flow.message_permits = permits;
    talk_send(talk, talker, &command);
}

size_t
talk_entries(struct talk *talk, struct talker *talker, uint64_t *out_entries)
{
    size_t count = 0;
    const struct lw_pulsar_command *command;
    while ((command = talk_poll(talk, talker)) != NULL) {
        assert_int_equal(command->type, LW_PULSAR_MESSAGE);
        if (out_entries != NULL && count < 256) {
            out_entries[count] = command->message.message_id.entry;
        }
        count++;
    }
    return count;
}

static uint64_t
ledger_of(struct talk *talk)
{
    uint64_t ledger = 7; /* of the topic that was made first */
    (void)talk;
    return ledger;
}

void
talk_ids(struct talk *talk, struct talker *talker, enum lw_pulsar_command_type type,
         uint64_t id, const uint64_t *entries, size_t count)
{
    uint8_t space[8192];
    struct lw_proto_writer writer = lw_proto_writer_of(space, sizeof space);
    for (size_t i = 0; i < count; i++) {
        struct lw_pulsar_message_id it = lw_pulsar_message_id_of(ledger_of(talk), entries[i]);
        lw_pulsar_list_put_id(&writer, &it);
    }
    struct lw_pulsar_command command = lw_pulsar_command_of(type);
    if (type == LW_PULSAR_ACK) {
        command.ack.consumer_id = id;
        command.ack.message_ids = lw_pulsar_list_of(&writer);
    } else {
        command.redeliver.consumer_id = id;
        command.redeliver.message_ids = lw_pulsar_list_of(&writer);
    }
    talk_send(talk, talker, &command);
}

/* -- Producing ---------------------------------------------------------------------------------- */

void
talk_produce(struct talk *talk, struct talker *talker, uint64_t id, const char *name)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_PRODUCER);
    command.producer.topic = text("t");
    command.producer.producer_id = command.producer.request_id = id;
    command.producer.producer_name = text(name);
    talk_send(talk, talker, &command);
    talk_expect(talk, talker, LW_PULSAR_PRODUCER_SUCCESS);
}

void
talk_publish(struct talk *talk, struct talker *talker, uint64_t id, uint64_t sequence,
             const char *value)
{
    uint8_t frame[4096];
    struct lw_proto_writer writer = lw_proto_writer_of(frame, sizeof frame);
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SEND);
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    struct lw_bytes part = text(value);
    command.send.producer_id = id;
    command.send.sequence_id = sequence;
    metadata.producer_name = text("talk");
    metadata.sequence_id = sequence;
    metadata.publish_time = (uint64_t)VIRTUAL_WALL_MS;
    lw_pulsar_payload_write_head(&command, NULL, &metadata, (struct lw_pulsar_body){ &part, 1 },
                                 &writer);
    lw_proto_put_raw(&writer, part.data, part.size);
    talk_send_bytes(talk, talker, frame, writer.size);
}

void
talk_fill(struct talk *talk, uint64_t entries, int32_t batch, const char *key)
{
    struct embedded_publish message = { .key = key, .value = { "value", 5 }, .batch = batch };
    for (uint64_t i = 0; i < entries; i++) {
        (void)embedded_publish(talk->broker, "t", &message);
    }
}
