/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a connection that is ready: messages in, frames out, requests and their answers, and
 * what everybody hears when it ends.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/connection_state.h"
#include "tests/brokers/pulsar/peer.h"

enum { CONSUMER = 7, PRODUCER = 9, MIB = 1024 * 1024 };

struct user {
    struct lw_pulsar_user user;
    uint32_t command_count;
    int32_t command_type;
    uint32_t message_count;
    size_t bytes;
    uint64_t entry; /* of the last message */
    bool is_in_order;
    bool keeps;
    struct lw_pulsar_block *block; /* held */
    struct lw_bytes rest;
    uint32_t room_count;
    uint32_t closed_count;
    struct lw_pulsar_failure failure;
    struct lw_pulsar_connection *moves_to; /* attaches there when it is closed */
    bool closes;                           /* the connection, at the first message */
};

static struct world world;
static struct peer_listener listener;
static struct peer peer;
static struct user consumer;
static struct user producer;
static uint64_t live_before;
static char journal[256]; /* of the end: who was told, in order */

static struct user *
user_of(struct lw_pulsar_user *user)
{
    return LW_CONTAINER(user, struct user, user);
}

static void
on_command(struct lw_pulsar_user *base, const struct lw_pulsar_command *command)
{
    struct user *user = user_of(base);
    user->command_count++;
    user->command_type = command->type;
}

static void
on_message(struct lw_pulsar_user *base, const struct lw_pulsar_message *message,
           struct lw_bytes rest, struct lw_pulsar_block *block)
{
    struct user *user = user_of(base);
    uint64_t entry = message->message_id.entry;
    user->is_in_order = user->message_count == 0 ||
                        (user->is_in_order && entry == user->entry + 1);
    user->entry = entry;
    user->message_count++;
    user->bytes += rest.size;
    if (user->keeps && !user->block) {
        lw_pulsar_block_hold(block);
        user->block = block;
        user->rest = rest;
    }
    if (user->closes) {
        lw_pulsar_connection_close(base->connection, NULL);
    }
}

static void
on_room(struct lw_pulsar_user *base)
{
    user_of(base)->room_count++;
}

static void
on_closed(struct lw_pulsar_user *base, struct lw_pulsar_connection *connection,
          const struct lw_pulsar_failure *failure)
{
    struct user *user = user_of(base);
    assert_null(base->connection);
    assert_int_equal(lw_pulsar_connection_state(connection), LW_PULSAR_CLOSED);
    user->closed_count++;
    user->failure = *failure;
    strcat(journal, base->kind == LW_PULSAR_USER_CONSUMER ? "consumer " : "producer ");
    if (user->moves_to) {
        assert_true(lw_pulsar_connection_attach(user->moves_to, base));
    }
}

static const struct lw_pulsar_user_ops ops = {
    .on_command = on_command,
    .on_message = on_message,
    .on_room = on_room,
    .on_closed = on_closed,
};

static void
attach(struct user *user, enum lw_pulsar_user_kind kind, uint64_t id)
{
    memset(user, 0, sizeof *user);
    user->user.ops = &ops;
    user->user.kind = kind;
    user->user.id = id;
    assert_true(lw_pulsar_connection_attach(world.connection, &user->user));
}

static int
setup(void **state)
{
    (void)state;
    live_before = lw_alloc_live();
    memset(&peer, 0, sizeof peer);
    journal[0] = '\0';
    peer_listen(&listener, "127.0.0.1", 0);
    world_init(&world, peer_url(&listener), NULL);
    world_dial(&world);
    peer_serve(&peer, &listener, &world);
    attach(&consumer, LW_PULSAR_USER_CONSUMER, CONSUMER);
    attach(&producer, LW_PULSAR_USER_PRODUCER, PRODUCER);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    if (consumer.block) {
        lw_pulsar_block_drop(consumer.block);
    }
    peer_hang_up(&peer);
    peer_unlisten(&listener);
    world_deinit(&world);
    assert_int_equal(lw_alloc_live(), live_before);
    return 0;
}

static bool
has_three(void *user)
{
    return ((struct user *)user)->message_count == 3;
}

static bool
is_closed(void *user)
{
    return ((struct user *)user)->closed_count > 0;
}

/* -- Messages in --------------------------------------------------------------------------------------- */

static void
messages_come_in_order_to_their_consumer(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        peer_send_message(&peer, CONSUMER, i, 100, 'x');
    }
    peer_send_message(&peer, 12345, 3, 100, 'x');
    world_until(&world, has_three, &consumer);
    world_rest(&world);
    assert_true(consumer.is_in_order);
    assert_int_equal(consumer.message_count, 3);
    assert_int_equal(consumer.bytes, 300);
}

static void
a_message_lives_as_long_as_its_block_is_held(void **state)
{
    (void)state;
    consumer.keeps = true;
    peer_send_message(&peer, CONSUMER, 0, 1000, 'a');
    for (uint64_t i = 1; i < 3; i++) {
        peer_send_message(&peer, CONSUMER, i, 200 * 1024, 'b');
    }
    world_until(&world, has_three, &consumer);
    const uint8_t *data = consumer.rest.data;
    assert_true(data > consumer.block->data);
    assert_true(data + 1000 <= consumer.block->data + consumer.block->capacity);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(data[i], 'a');
    }
}

static void
a_frame_larger_than_a_block_comes_whole(void **state)
{
    (void)state;
    consumer.keeps = true;
    enum { BYTES = 3 * MIB };
    uint8_t *frame = malloc(BYTES + 256);
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_MESSAGE);
    command.message.consumer_id = CONSUMER;
    struct lw_proto_writer writer = lw_proto_writer_of(frame + 8, 248);
    lw_pulsar_command_encode(&command, &writer);
    lw_proto_store_be32(frame, (uint32_t)(4 + writer.size + BYTES));
    lw_proto_store_be32(frame + 4, (uint32_t)writer.size);
    for (size_t i = 0; i < BYTES; i++) {
        frame[8 + writer.size + i] = (uint8_t)(i * 7 >> 8);
    }
    for (size_t at = 0; at < BYTES + 8 + writer.size;) {
        size_t left = BYTES + 8 + writer.size - at;
        size_t part = left < 50000 ? left : 50000;
        peer_send_bytes(&peer, frame + at, part);
        virtual_host_settle(&world.virtual_host);
        at += part;
    }
    world_rest(&world);
    assert_int_equal(consumer.message_count, 1);
    assert_memory_equal(consumer.rest.data, frame + 8 + writer.size, BYTES);
    free(frame);
}

static void
messages_may_come_byte_by_byte(void **state)
{
    (void)state;
    uint8_t frames[600];
    size_t size = 0;
    for (uint64_t i = 0; i < 3; i++) {
        struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_MESSAGE);
        command.message.consumer_id = CONSUMER;
        command.message.message_id.entry = i;
        struct lw_proto_writer writer = lw_proto_writer_of(frames + size + 8, 100);
        lw_pulsar_command_encode(&command, &writer);
        lw_proto_store_be32(frames + size, (uint32_t)(4 + writer.size + 20));
        lw_proto_store_be32(frames + size + 4, (uint32_t)writer.size);
        size += 8 + writer.size;
        memset(frames + size, 'y', 20);
        size += 20;
    }
    for (size_t i = 0; i < size; i++) {
        peer_send_bytes(&peer, frames + i, 1);
        virtual_host_settle(&world.virtual_host);
    }
    world_until(&world, has_three, &consumer);
    assert_true(consumer.is_in_order);
    assert_int_equal(consumer.bytes, 60);
}

struct pace {
    struct lw_turn turn;
    uint32_t before;
    uint32_t most;
};

static uint64_t
watch_pace(struct lw_turn *turn, uint64_t now)
{
    struct pace *pace = LW_CONTAINER(turn, struct pace, turn);
    (void)now;
    uint32_t came = consumer.message_count - pace->before;
    pace->most = came > pace->most ? came : pace->most;
    pace->before = consumer.message_count;
    return LW_NEVER;
}

static bool
has_all(void *user)
{
    return ((struct user *)user)->message_count == 3000;
}

static void
a_turn_takes_a_bounded_number_of_messages(void **state)
{
    (void)state;
    struct pace pace = { .turn.fn = watch_pace };
    lw_host_add_turn(world.host, &pace.turn);
    for (uint64_t i = 0; i < 3000; i++) {
        peer_send_message(&peer, CONSUMER, i, 10, 'x');
    }
    world_until(&world, has_all, &consumer);
    lw_host_remove_turn(&pace.turn);
    assert_true(consumer.is_in_order);
    assert_true(pace.most > 0);
    assert_true(pace.most <= 2 * LW_PULSAR_FRAMES_PER_TURN);
}

static void
closing_from_in_a_message_ends_the_reading(void **state)
{
    (void)state;
    consumer.closes = true;
    for (uint64_t i = 0; i < 3; i++) {
        peer_send_message(&peer, CONSUMER, i, 10, 'x');
    }
    world_until(&world, is_closed, &consumer);
    assert_int_equal(consumer.message_count, 1);
}

/* -- Frames out ------------------------------------------------------------------------------------------- */

struct frame {
    struct lw_pulsar_output output;
    uint32_t sent_count;
};

static void
on_sent(struct lw_pulsar_output *output)
{
    LW_CONTAINER(output, struct frame, output)->sent_count++;
}

/* SEND with `body` behind it. */
static void
send_frame(struct frame *frame, uint64_t sequence_id, const void *body, size_t size)
{
    uint8_t head[128];
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SEND);
    command.send.producer_id = PRODUCER;
    command.send.sequence_id = sequence_id;
    struct lw_proto_writer writer = lw_proto_writer_of(head + 8, sizeof head - 8);
    lw_pulsar_command_encode(&command, &writer);
    lw_proto_store_be32(head, (uint32_t)(4 + writer.size + size));
    lw_proto_store_be32(head + 4, (uint32_t)writer.size);
    frame->output.body = (struct lw_bytes){ body, size };
    frame->output.on_sent = on_sent;
    assert_true(lw_pulsar_connection_send_frame(
        world.connection, (struct lw_bytes){ head, 8 + writer.size }, &frame->output));
}

static void
send_flow(uint32_t permits)
{
    struct lw_pulsar_command flow = lw_pulsar_command_of(LW_PULSAR_FLOW);
    flow.flow.consumer_id = CONSUMER;
    flow.flow.message_permits = permits;
    assert_true(lw_pulsar_connection_send(world.connection, &flow));
}

static void
frames_leave_in_the_order_of_their_sending(void **state)
{
    (void)state;
    struct frame frames[2] = { 0 };
    send_flow(1);
    send_frame(&frames[0], 10, "first", 5);
    send_frame(&frames[1], 11, NULL, 0);
    send_flow(2);
    assert_int_equal(peer_expect(&peer, &world, LW_PULSAR_FLOW)->flow.message_permits, 1);
    assert_int_equal(peer_expect(&peer, &world, LW_PULSAR_SEND)->send.sequence_id, 10);
    assert_memory_equal(peer.rest.data, "first", 5);
    assert_int_equal(peer_expect(&peer, &world, LW_PULSAR_SEND)->send.sequence_id, 11);
    assert_int_equal(peer.rest.size, 0);
    assert_int_equal(peer_expect(&peer, &world, LW_PULSAR_FLOW)->flow.message_permits, 2);
    assert_int_equal(frames[0].sent_count, 1);
    assert_int_equal(frames[1].sent_count, 1);
}

static void
a_body_is_not_copied(void **state)
{
    (void)state;
    struct frame frame = { 0 };
    char body[] = "before";
    send_frame(&frame, 1, body, 6);
    memcpy(body, "behind", 6); /* what goes out is what lies there when it is sent */
    peer_expect(&peer, &world, LW_PULSAR_SEND);
    assert_memory_equal(peer.rest.data, "behind", 6);
}

static bool
is_sent(void *user)
{
    struct frame *frame = user;
    (void)peer_poll(&peer);
    return frame->sent_count > 0;
}

static void
a_socket_that_is_full_holds_back_and_lets_go_again(void **state)
{
    (void)state;
    enum { COUNT = 6 };
    static uint8_t body[4 * MIB];
    struct frame frames[COUNT] = { 0 };
    assert_true(lw_pulsar_connection_has_room(world.connection));
    for (uint64_t i = 0; i < COUNT; i++) {
        memset(body, 'a', sizeof body);
        send_frame(&frames[i], i, body, sizeof body);
    }
    world_rest(&world);
    assert_int_equal(frames[COUNT - 1].sent_count, 0);
    assert_false(lw_pulsar_connection_has_room(world.connection));
    assert_int_equal(producer.room_count, 0);
    world_until(&world, is_sent, &frames[COUNT - 1]);
    assert_true(lw_pulsar_connection_has_room(world.connection));
    assert_int_equal(producer.room_count, 1);
    assert_int_equal(consumer.room_count, 1);
}

static void
a_pong_goes_between_two_frames_before_those_that_wait(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    static uint8_t body[4 * MIB];
    struct frame frames[COUNT] = { 0 };
    uint64_t pong_after = COUNT;
    for (uint64_t i = 0; i < COUNT; i++) {
        send_frame(&frames[i], i, body, sizeof body);
    }
    world_rest(&world);
    peer_send_simple(&peer, LW_PULSAR_PING);
    world_rest(&world);
    assert_int_equal(frames[COUNT - 1].sent_count, 0);
    for (uint64_t i = 0; i < COUNT;) {
        const struct lw_pulsar_command *command = peer_poll(&peer);
        virtual_host_settle(&world.virtual_host);
        if (command && command->type == LW_PULSAR_PONG) {
            pong_after = i;
        } else if (command) {
            assert_int_equal(command->send.sequence_id, i);
            assert_int_equal(peer.rest.size, sizeof body);
            i++;
        }
    }
    assert_true(pong_after < COUNT - 1);
}

static void
what_was_not_sent_is_forgotten_at_the_end(void **state)
{
    (void)state;
    struct frame frame = { 0 };
    send_frame(&frame, 1, "x", 1);
    struct lw_error error = { .code = "E0501" };
    lw_pulsar_connection_close(world.connection, &error);
    world_until(&world, is_closed, &producer);
    assert_int_equal(frame.sent_count, 0);
    assert_ptr_equal(frame.output.link.next, &frame.output.link);
}

static void
closing_in_order_sends_what_was_queued(void **state)
{
    (void)state;
    send_flow(5);
    lw_pulsar_connection_close(world.connection, NULL);
    assert_int_equal(peer_expect(&peer, &world, LW_PULSAR_FLOW)->flow.message_permits, 5);
    peer_expect_end(&peer, &world);
}

/* -- Requests ----------------------------------------------------------------------------------------------- */

struct ask {
    struct lw_pulsar_request request;
    uint32_t count;
    int32_t type; /* of the answer */
    struct lw_pulsar_failure failure;
    bool keeps;
};

static void
on_answer(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
          const struct lw_pulsar_failure *failure)
{
    struct ask *ask = LW_CONTAINER(request, struct ask, request);
    ask->count++;
    ask->type = answer ? answer->type : 0;
    if (failure) {
        ask->failure = *failure;
    }
    request->keeps = ask->keeps;
    strcat(journal, "request ");
}

static uint64_t
ask_subscribe(struct ask *ask)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SUBSCRIBE);
    uint64_t id = lw_pulsar_request_begin(world.connection, &ask->request, on_answer,
                                          "subscribe", 30000 * LW_MS);
    command.subscribe.topic = lw_bytes_of("t");
    command.subscribe.subscription = lw_bytes_of("s");
    command.subscribe.consumer_id = CONSUMER;
    command.subscribe.request_id = id;
    lw_pulsar_connection_send(world.connection, &command);
    return id;
}

static bool
is_answered(void *user)
{
    return ((struct ask *)user)->count > 0;
}

static void
an_answer_finds_its_request_in_any_order(void **state)
{
    (void)state;
    struct ask asks[3] = { 0 };
    uint64_t ids[3];
    for (int i = 0; i < 3; i++) {
        ids[i] = ask_subscribe(&asks[i]);
    }
    peer_send_success(&peer, ids[2]);
    world_until(&world, is_answered, &asks[2]);
    assert_int_equal(asks[2].type, LW_PULSAR_SUCCESS);
    assert_int_equal(asks[0].count + asks[1].count, 0);
    peer_send_success(&peer, ids[0]);
    world_until(&world, is_answered, &asks[0]);
    peer_send_success(&peer, ids[1]);
    world_until(&world, is_answered, &asks[1]);
}

static void
an_error_is_the_answer_of_whatever_asked(void **state)
{
    (void)state;
    struct ask ask = { 0 };
    uint64_t id = ask_subscribe(&ask);
    peer_send_error(&peer, id, LW_PULSAR_CONSUMER_BUSY, "taken\nat com.example.Stack");
    world_until(&world, is_answered, &ask);
    assert_int_equal(ask.failure.code, LW_PULSAR_CONSUMER_BUSY);
    assert_true(ask.failure.is_retried);
    assert_non_null(strstr(ask.failure.error.message, "taken"));
    assert_null(strstr(ask.failure.error.message, "Stack"));
}

static void
an_answer_that_is_too_late_is_ignored(void **state)
{
    (void)state;
    struct ask ask = { 0 };
    uint64_t id = ask_subscribe(&ask);
    peer_expect(&peer, &world, LW_PULSAR_SUBSCRIBE);
    for (int i = 0; i < 2; i++) { /* keep-alive goes on */
        virtual_host_pass(&world.virtual_host, 16000 * LW_MS);
        peer_send_success(&peer, 999999);
        world_rest(&world);
    }
    assert_int_equal(ask.count, 1);
    assert_int_equal(ask.failure.error.status, LW_STATUS_TIMEOUT);
    peer_send_success(&peer, id);
    world_rest(&world);
    assert_int_equal(ask.count, 1);
    assert_int_equal(lw_pulsar_connection_state(world.connection), LW_PULSAR_READY);
}

static void
an_answer_of_another_type_is_a_failure(void **state)
{
    (void)state;
    struct ask ask = { 0 };
    struct lw_pulsar_command wrong = lw_pulsar_command_of(LW_PULSAR_PRODUCER_SUCCESS);
    wrong.producer_success.request_id = ask_subscribe(&ask);
    wrong.producer_success.producer_name = lw_bytes_of("p");
    peer_send(&peer, &wrong);
    world_until(&world, is_answered, &ask);
    assert_int_equal(ask.type, 0);
    assert_int_equal(ask.failure.code, -1);
    assert_non_null(strstr(ask.failure.error.message, "PRODUCER_SUCCESS"));
}

static void
send_producer_success(uint64_t id, bool is_ready)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_PRODUCER_SUCCESS);
    command.producer_success.request_id = id;
    command.producer_success.producer_name = lw_bytes_of("p");
    command.producer_success.producer_ready = is_ready;
    peer_send(&peer, &command);
}

static void
a_producer_that_waits_for_its_topic_gets_two_answers(void **state)
{
    (void)state;
    struct ask ask = { .keeps = true };
    uint64_t id = lw_pulsar_request_begin(world.connection, &ask.request, on_answer, "create",
                                          1000 * LW_MS);
    send_producer_success(id, false);
    world_until(&world, is_answered, &ask);
    virtual_host_pass(&world.virtual_host, 5000 * LW_MS);
    assert_int_equal(ask.count, 1);
    ask.keeps = false;
    ask.count = 0;
    send_producer_success(id, true);
    world_until(&world, is_answered, &ask);
    assert_null(ask.request.connection);
}

static void
a_cancelled_request_hears_nothing(void **state)
{
    (void)state;
    struct ask ask = { 0 };
    uint64_t id = ask_subscribe(&ask);
    lw_pulsar_request_cancel(&ask.request);
    peer_send_success(&peer, id);
    world_rest(&world);
    assert_int_equal(ask.count, 0);
}

static void
commands_go_to_the_user_with_their_id(void **state)
{
    (void)state;
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_CLOSE_PRODUCER);
    command.close_producer.id = PRODUCER;
    command.close_producer.request_id = LW_PULSAR_NO_REQUEST;
    peer_send(&peer, &command);
    command = lw_pulsar_command_of(LW_PULSAR_ACK_RESPONSE);
    command.ack_response.consumer_id = CONSUMER;
    command.ack_response.request_id = 4711;
    command.ack_response.has |= LW_PULSAR_ACK_RESPONSE_HAS_REQUEST_ID;
    peer_send(&peer, &command);
    world_rest(&world);
    assert_int_equal(producer.command_type, LW_PULSAR_CLOSE_PRODUCER);
    assert_int_equal(consumer.command_type, LW_PULSAR_ACK_RESPONSE);
    assert_int_equal(producer.command_count + consumer.command_count, 2);
}

/* -- The end -------------------------------------------------------------------------------------------------- */

static void
at_the_end_requests_fail_first_and_then_users_are_told_once(void **state)
{
    (void)state;
    struct ask ask = { 0 };
    ask_subscribe(&ask);
    peer_hang_up(&peer);
    world_until(&world, is_closed, &producer);
    assert_string_equal(journal, "request consumer producer ");
    assert_int_equal(ask.failure.code, -1);
    assert_true(ask.failure.is_retried);
    assert_int_equal(consumer.closed_count, 1);
    assert_true(lw_list_is_empty(&world.client.connections));
}

static void
a_request_on_a_connection_that_was_closed_fails_later(void **state)
{
    (void)state;
    struct ask ask = { 0 };
    lw_pulsar_connection_close(world.connection, NULL);
    ask_subscribe(&ask);
    assert_int_equal(ask.count, 0);
    world_until(&world, is_answered, &ask);
    assert_int_equal(ask.failure.error.status, LW_STATUS_CLOSED);
}

static void
a_user_may_go_to_another_connection_when_it_is_told(void **state)
{
    (void)state;
    struct peer second;
    struct lw_pulsar_connection *old = world.connection;
    peer_hang_up(&peer);
    lw_pulsar_connection_close(old, NULL);
    world_dial(&world); /* the old one has left the pool already */
    peer_accept(&second, &listener, &world);
    assert_int_equal(consumer.closed_count, 1);
    peer_greet(&second, &world);
    world_until(&world, world_is_dialled, &world);
    assert_true(lw_pulsar_connection_attach(world.connection, &consumer.user));
    peer_send_message(&second, CONSUMER, 0, 10, 'x');
    world_rest(&world);
    assert_int_equal(consumer.message_count, 1);
    peer = second;
}

static void
credentials_that_ended_end_the_connection_with_the_reason(void **state)
{
    (void)state;
    peer_send_error(&peer, LW_PULSAR_NO_REQUEST, LW_PULSAR_AUTHENTICATION_ERROR, "expired");
    world_until(&world, is_closed, &consumer);
    assert_string_equal(consumer.failure.error.code, "E0502");
    assert_int_equal(consumer.failure.code, LW_PULSAR_AUTHENTICATION_ERROR);
}

static void
a_wrong_length_ends_the_connection(void **state)
{
    (void)state;
    peer_send_bytes(&peer, "\x00\x00\x00\x00", 4);
    world_until(&world, is_closed, &consumer);
    assert_non_null(strstr(consumer.failure.error.message, "cannot be understood"));
}

/* -- Without memory ------------------------------------------------------------------------------------------ */

static void
play_a_little(void)
{
    static struct frame frame;
    static struct ask ask;
    memset(&frame, 0, sizeof frame);
    memset(&ask, 0, sizeof ask);
    world_dial(&world);
    for (int i = 0; i < 20 && !world_is_dialled(&world); i++) {
        world_rest(&world);
        if (!peer.in && peer_is_called(&listener)) {
            peer_accept(&peer, &listener, &world);
        }
        const struct lw_pulsar_command *command = peer.in ? peer_poll(&peer) : NULL;
        if (command && command->type == LW_PULSAR_CONNECT) {
            struct lw_pulsar_command connected = lw_pulsar_command_of(LW_PULSAR_CONNECTED);
            connected.connected.server_version = lw_bytes_of("x");
            peer_send(&peer, &connected);
        }
    }
    if (world.connection && lw_pulsar_connection_attach(world.connection, &consumer.user)) {
        peer_send_message(&peer, CONSUMER, 0, 300 * 1024, 'x');
        ask_subscribe(&ask);
        world_rest(&world);
        lw_pulsar_request_cancel(&ask.request);
        lw_pulsar_connection_detach(&consumer.user);
    }
    lw_pulsar_dial_cancel(&world.dial);
}

static void
lack_of_memory_at_any_place_ends_a_connection_and_no_more(void **state)
{
    (void)state;
    bool was_whole = false;
    peer_hang_up(&peer);
    world_rest(&world);
    for (uint64_t n = 1; !was_whole; n++) {
        uint64_t before = lw_alloc_count();
        consumer.message_count = 0;
        lw_alloc_fail_at(n);
        play_a_little();
        lw_alloc_fail_at(0);
        was_whole = lw_alloc_count() - before < n; /* nothing was missing any more */
        assert_true(n < 200);
        assert_true(!was_whole || consumer.message_count == 1);
        peer_hang_up(&peer);
        lw_pulsar_client_deinit(&world.client);
        world_init(&world, peer_url(&listener), NULL);
        while (peer_is_called(&listener)) {
            peer_accept(&peer, &listener, &world);
            peer_hang_up(&peer);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(messages_come_in_order_to_their_consumer),
        TEST(a_message_lives_as_long_as_its_block_is_held),
        TEST(a_frame_larger_than_a_block_comes_whole),
        TEST(messages_may_come_byte_by_byte),
        TEST(a_turn_takes_a_bounded_number_of_messages),
        TEST(closing_from_in_a_message_ends_the_reading),
        TEST(frames_leave_in_the_order_of_their_sending),
        TEST(a_body_is_not_copied),
        TEST(a_socket_that_is_full_holds_back_and_lets_go_again),
        TEST(a_pong_goes_between_two_frames_before_those_that_wait),
        TEST(what_was_not_sent_is_forgotten_at_the_end),
        TEST(closing_in_order_sends_what_was_queued),
        TEST(an_answer_finds_its_request_in_any_order),
        TEST(an_error_is_the_answer_of_whatever_asked),
        TEST(an_answer_that_is_too_late_is_ignored),
        TEST(an_answer_of_another_type_is_a_failure),
        TEST(a_producer_that_waits_for_its_topic_gets_two_answers),
        TEST(a_cancelled_request_hears_nothing),
        TEST(commands_go_to_the_user_with_their_id),
        TEST(at_the_end_requests_fail_first_and_then_users_are_told_once),
        TEST(a_request_on_a_connection_that_was_closed_fails_later),
        TEST(a_user_may_go_to_another_connection_when_it_is_told),
        TEST(credentials_that_ended_end_the_connection_with_the_reason),
        TEST(a_wrong_length_ends_the_connection),
        TEST(lack_of_memory_at_any_place_ends_a_connection_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
