/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket on the loop. A client is a descriptor, what came of the next request, and
 * what is not yet written of the answers. It is read while its answers are small, so a client
 * that never reads stops itself and nobody else. A spare descriptor lets one client in when there
 * is no other: a service that ran out of them can still be asked why it stands.
 */
#include "service/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "service/control_path.h"

#define ACCEPT_AGAIN (1000 * LW_MS)

enum { CLIENTS_MAX = 16, REQUEST_MAX = 65536, ANSWERS_MAX = 1 << 20, BACKLOG = 16 };

struct client {
    struct lw_list link;
    struct lw_control *control;
    struct lw_watch *watch;
    int fd;
    struct lw_text request; /* not yet a whole line */
    struct lw_text answers;
    size_t written; /* of the answers */
    bool is_over;   /* it sends nothing more: ends when its answers are written */
};

struct lw_control {
    struct lw_host *host;
    struct lw_requests *requests;
    struct lw_watch *watch;
    int fd;
    int spare; /* given up to let a client in where no descriptor is left; -1: it is */
    struct lw_timer accept_timer; /* armed: nobody can be let in before */
    char path[LW_CONTROL_PATH_MAX];
    struct lw_list clients;
    uint32_t client_count;
};

/* -- Clients ----------------------------------------------------------------------------------- */

static void
refill_spare(struct lw_control *control)
{
    if (control->spare < 0) {
        control->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

/* There may be a descriptor again. */
static void
open_door(struct lw_control *control)
{
    refill_spare(control);
    if (lw_timer_is_armed(&control->accept_timer)) {
        lw_timers_disarm(&control->host->timers, &control->accept_timer);
        control->host->ops->rewatch(control->watch, LW_READABLE);
    }
}

static void
end_client(struct client *client)
{
    client->control->host->ops->unwatch(client->watch);
    close(client->fd);
    open_door(client->control);
    lw_list_remove(&client->link);
    client->control->client_count--;
    lw_text_deinit(&client->request);
    lw_text_deinit(&client->answers);
    lw_free(client);
}

/* Answers every whole line; false when a line is too long. */
static bool
answer_lines(struct client *client)
{
    struct lw_text *request = &client->request;
    size_t start = 0;
    const char *end;
    while (start < request->size &&
           (end = memchr(request->data + start, '\n', request->size - start)) != NULL) {
        size_t length = (size_t)(end - request->data) - start;
        lw_requests_answer(client->control->requests, request->data + start, length,
                           &client->answers);
        start += length + 1;
    }
    if (start > 0) {
        memmove(request->data, request->data + start, request->size - start);
        request->size -= start;
    }
    return request->size <= REQUEST_MAX && !request->is_failed && !client->answers.is_failed;
}

/* Reads what is there; false when the client is to be ended. */
static bool
read_requests(struct client *client)
{
    char buffer[4096];
    ssize_t got = recv(client->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
        lw_text_append_bytes(&client->request, buffer, (size_t)got);
        return answer_lines(client);
    }
    if (got == 0) {
        client->is_over = true;
        return true;
    }
    return errno == EAGAIN || errno == EINTR;
}

static bool
write_answers(struct client *client)
{
    struct lw_text *answers = &client->answers;
    while (client->written < answers->size) {
        ssize_t sent = send(client->fd, answers->data + client->written,
                            answers->size - client->written, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        client->written += (size_t)sent;
    }
    lw_text_clear(answers);
    client->written = 0;
    return true;
}

static void
on_client(int fd, int events, void *user)
{
    struct client *client = user;
    (void)fd;
    bool is_good = true;
    if ((events & LW_READABLE) && !client->is_over && client->answers.size < ANSWERS_MAX) {
        is_good = read_requests(client);
    }
    is_good = is_good && write_answers(client);
    bool has_answers = client->answers.size > 0;
    if (!is_good || (client->is_over && !has_answers)) {
        end_client(client);
        return;
    }
    bool may_read = !client->is_over && client->answers.size < ANSWERS_MAX;
    client->control->host->ops->rewatch(client->watch, (may_read ? LW_READABLE : 0) |
                                                           (has_answers ? LW_WRITABLE : 0));
}

static struct client *
create_client(struct lw_control *control, int fd)
{
    struct client *client = lw_alloc(sizeof *client);
    if (!client) {
        return NULL;
    }
    client->control = control;
    client->fd = fd;
    lw_text_init(&client->request);
    lw_text_init(&client->answers);
    client->watch = control->host->ops->watch(control->host, fd, LW_READABLE, on_client,
                                              client);
    if (!client->watch) {
        lw_free(client);
        return NULL;
    }
    lw_list_push(&control->clients, &client->link);
    control->client_count++;
    return client;
}

static bool
has_run_out(int failed)
{
    return failed == EMFILE || failed == ENFILE || failed == ENOMEM || failed == ENOBUFS;
}

/* Who cannot be let in stays at the door, which would wake the loop at once again and again. */
static int
let_in(struct lw_control *control)
{
    int client_fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client_fd < 0 && has_run_out(errno) && control->spare >= 0) {
        close(control->spare);
        control->spare = -1;
        client_fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    if (client_fd < 0 && has_run_out(errno)) {
        control->host->ops->rewatch(control->watch, 0);
        lw_timers_arm(&control->host->timers, &control->accept_timer,
                      control->host->now + ACCEPT_AGAIN);
    }
    return client_fd;
}

static void
on_accept_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_control *control = LW_CONTAINER(timer, struct lw_control, accept_timer);
    (void)now;
    refill_spare(control);
    control->host->ops->rewatch(control->watch, LW_READABLE);
}

static void
on_connection(int fd, int events, void *user)
{
    struct lw_control *control = user;
    (void)fd;
    (void)events;
    int client_fd = let_in(control);
    if (client_fd < 0) {
        return;
    }
    if (control->client_count == CLIENTS_MAX || !create_client(control, client_fd)) {
        static const char full[] =
            "{\"ok\":false,\"error\":\"too many clients\",\"exit\":69}\n";
        (void)send(client_fd, full, sizeof full - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        close(client_fd);
    }
}

/* -- The socket -------------------------------------------------------------------------------- */

/* Binds with mode 0600 from the first moment: the socket's inode takes the descriptor's mode. */
static int
bind_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    lw_text_copy(address.sun_path, sizeof address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, BACKLOG) != 0) {
        int problem = errno;
        close(fd);
        errno = problem;
        return -1;
    }
    return fd;
}

/* Only a socket that nobody listens on is removed, never another kind of file. */
static bool
remove_dead(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISSOCK(info.st_mode)) {
        return false;
    }
    int fd = lw_control_path_connect(path);
    if (fd >= 0) {
        close(fd);
        return false;
    }
    return errno == ECONNREFUSED && unlink(path) == 0;
}

static int
listen_on(const char *path)
{
    int fd = bind_to(path);
    if (fd < 0 && errno == EADDRINUSE) {
        if (!remove_dead(path)) {
            errno = EADDRINUSE;
            return -1;
        }
        fd = bind_to(path);
    }
    return fd;
}

static enum lw_status
choose_path(struct lw_control *control, const char *name, const char *path,
            struct lw_error *ret_error)
{
    if (!path) {
        return lw_control_path_make(name, control->path, ret_error);
    }
    if (strlen(path) >= sizeof control->path) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "E0801",
                            "the path of the control socket is longer than %d characters: %s",
                            LW_CONTROL_PATH_MAX - 1, path);
    }
    lw_text_copy(control->path, sizeof control->path, path);
    return LW_STATUS_OK;
}

static enum lw_status
listen_somewhere(struct lw_control *control, struct lw_error *ret_error)
{
    char other[LW_CONTROL_PATH_MAX];
    control->fd = listen_on(control->path);
    if (control->fd < 0 && errno == EADDRINUSE &&
        lw_control_path_with_pid(control->path, getpid(), other)) {
        lw_host_log(control->host, LW_LOG_WARN, "control.taken",
                    "another process holds the control socket; using one with our number",
                    "path=%s taken=%s", other, control->path);
        lw_text_copy(control->path, sizeof control->path, other);
        control->fd = listen_on(control->path);
    }
    if (control->fd < 0) {
        enum lw_status status = lw_error_set(ret_error, LW_STATUS_SYSTEM, "E0801",
                                             "cannot make the control socket %s: %s",
                                             control->path, strerrordesc_np(errno));
        lw_error_help(ret_error, "set service.control to a path in a directory that you can "
                                 "write");
        return status;
    }
    return LW_STATUS_OK;
}

static void
close_spare(struct lw_control *control)
{
    if (control->spare >= 0) {
        close(control->spare);
    }
}

enum lw_status
lw_control_open(struct lw_requests *requests, const char *path, struct lw_control **ret_control,
                struct lw_error *ret_error)
{
    struct lw_dispatcher *dispatcher = lw_requests_report(requests)->dispatcher;
    struct lw_host *host = dispatcher->host;
    struct lw_control *control = lw_alloc(sizeof *control);
    if (!control) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    control->host = host;
    control->requests = requests;
    lw_list_init(&control->clients);
    enum lw_status status = choose_path(control, dispatcher->name, path, ret_error);
    if (status == LW_STATUS_OK) {
        status = listen_somewhere(control, ret_error);
    }
    if (status != LW_STATUS_OK) {
        lw_free(control);
        return status;
    }
    control->spare = -1;
    refill_spare(control);
    lw_timer_init(&control->accept_timer, on_accept_timer);
    control->watch = host->ops->watch(host, control->fd, LW_READABLE, on_connection, control);
    if (!control->watch) {
        close_spare(control);
        close(control->fd);
        (void)unlink(control->path);
        lw_free(control);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    *ret_control = control;
    return LW_STATUS_OK;
}

void
lw_control_close(struct lw_control *control)
{
    if (!control) {
        return;
    }
    struct lw_list *link;
    while ((link = lw_list_first(&control->clients)) != NULL) {
        end_client(LW_CONTAINER(link, struct client, link));
    }
    lw_timers_disarm(&control->host->timers, &control->accept_timer);
    close_spare(control);
    control->host->ops->unwatch(control->watch);
    close(control->fd);
    (void)unlink(control->path);
    lw_free(control);
}

const char *
lw_control_path(const struct lw_control *control)
{
    return control->path;
}
