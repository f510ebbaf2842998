/*
 * orders.c - confirms orders such as {"id": 7}. Built by `make` into orders.so, which orders.yaml
 * names. laneway/laneway.h says what a handler can ask and do, laneway/handler.h what a plug-in is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <laneway/handler.h>

/* What one entry of `handlers` keeps between its messages. */
struct confirm {
    size_t bytes_max;
};

/* Copies the number behind "id": into `out`; 0 when there is none. A parser of JSON goes here. */
static int
read_id(struct lw_bytes order, char out[32])
{
    char text[4096];
    const char *id = NULL;
    if (order.data && order.size < sizeof text) {
        memcpy(text, order.data, order.size);
        text[order.size] = '\0';
        id = strstr(text, "\"id\":");
    }
    return id && sscanf(id + strlen("\"id\":"), " %31[0-9]", out) == 1;
}

/*
 * Runs on several threads at once and may block. Reasons and replies are copied. It asks
 * lw_delivery_is_cancelled now and then if it may run for long.
 */
static enum lw_verdict
confirm_order(struct lw_delivery *delivery, void *user)
{
    const struct confirm *confirm = user;
    struct lw_bytes order = lw_delivery_value(delivery);
    char id[32];
    char reply[64];
    if (order.size > confirm->bytes_max) {
        return lw_delivery_dead(delivery, "the order is too large");
    }
    if (!read_id(order, id)) {
        return lw_delivery_dead(delivery, "the order has no id");
    }
    (void)snprintf(reply, sizeof reply, "{\"confirmed\": %s}", id);
    if (lw_delivery_reply(delivery, lw_bytes_of(reply)) != LW_STATUS_OK) {
        return lw_delivery_retry(delivery, "no memory for the reply", -1);
    }
    return LW_OK;
}

/* Before the first message. What is refused here keeps the service from starting. */
static enum lw_status
confirm_open(const struct lw_handler_setup *setup, void **ret_user, struct lw_error *error)
{
    const char *text = lw_handler_option(setup, "bytes_max", "4095");
    char *end = NULL;
    unsigned long bytes_max = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || bytes_max == 0 || bytes_max > 4095) {
        (void)snprintf(error->message, sizeof error->message,
                       "bytes_max \"%s\" is not a number from 1 to 4095", text);
        return LW_STATUS_CONFIG;
    }
    struct confirm *confirm = malloc(sizeof *confirm);
    if (!confirm) {
        return LW_STATUS_NO_MEMORY;
    }
    confirm->bytes_max = bytes_max;
    *ret_user = confirm;
    return LW_STATUS_OK;
}

/* After the last message. */
static void
confirm_close(void *user)
{
    free(user);
}

LW_HANDLER(lw_handler) = {
    LW_HANDLER_HEAD,      .about = "confirms orders", .handle = confirm_order,
    .open = confirm_open, .close = confirm_close,
};
