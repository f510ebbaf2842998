/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread, epoll, one buffer a connection. A request is a head with a content-length and that
 * many bytes; nothing else is understood, since only libcurl asks.
 */
#include "bench/support/http_service.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS = 64, BUFFER_BYTES = 1 << 16, BACKLOG = 1024 };

struct connection {
    int fd;
    size_t size;
    char bytes[BUFFER_BYTES + 1];
};

static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";

/* The bytes of the first request in the buffer; 0: it is not all there. */
static size_t
request_size(struct connection *connection)
{
    connection->bytes[connection->size] = '\0';
    const char *head_end = strstr(connection->bytes, "\r\n\r\n");
    if (!head_end) {
        return 0;
    }
    const char *length = strcasestr(connection->bytes, "\ncontent-length:");
    size_t body = length && length < head_end
                      ? strtoul(length + strlen("\ncontent-length:"), NULL, 10)
                      : 0;
    size_t size = (size_t)(head_end + 4 - connection->bytes) + body;
    return size <= connection->size ? size : 0;
}

/* False: it is over. */
static bool
serve(struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->bytes + connection->size,
                       BUFFER_BYTES - connection->size, 0);
    if (got <= 0) {
        return false;
    }
    connection->size += (size_t)got;
    for (size_t size = request_size(connection); size > 0; size = request_size(connection)) {
        if (send(connection->fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) {
            return false;
        }
        connection->size -= size;
        memmove(connection->bytes, connection->bytes + size, connection->size);
    }
    return true;
}

static void
take(int epoll, int listener)
{
    int one = 1;
    struct connection *connection = calloc(1, sizeof *connection);
    connection->fd = accept(listener, NULL, NULL);
    (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };
    (void)epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event);
}

static void
run(int listener)
{
    struct epoll_event events[EVENTS];
    int epoll = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN };
    (void)epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!connection) {
                take(epoll, listener);
            } else if (!serve(connection)) {
                (void)close(connection->fd);
                free(connection);
            }
        }
    }
}

bool
lw_http_service_start(struct lw_http_service *service)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, BACKLOG) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        return false;
    }
    (void)snprintf(service->url, sizeof service->url, "http://127.0.0.1:%d/in",
                   ntohs(address.sin_port));
    service->pid = fork();
    if (service->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(listener);
    }
    (void)close(listener);
    return service->pid > 0;
}

void
lw_http_service_stop(struct lw_http_service *service)
{
    (void)kill(service->pid, SIGKILL);
    (void)waitpid(service->pid, NULL, 0);
}
