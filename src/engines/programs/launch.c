/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users are looked up here, in the process that starts, since the helper should be small and a
 * lookup may ask the network. The trial is the helper itself with --try: what the kernel says is
 * told, rather than guessed from who we are.
 */
#include "engines/programs/launch.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/installed.h"
#include "base/text.h"
#include "engines/programs/process.h"

enum { GROUPS_MAX = 1024, NAME_BYTES_MAX = 256, TRIAL_MS = 10000 };

static const char *const helper_name = "laneway-exec";

/* A user as the helper is told of it. */
struct account {
    uid_t uid;
    gid_t gid;
    char name[NAME_BYTES_MAX];
    char home[PATH_MAX];
    char groups[GROUPS_MAX * 12]; /* "33,44" */
};

bool
lw_programs_launch_is_needed(const struct lw_programs_limits *limits)
{
    return limits->nofile > 0 || (limits->user && limits->user[0]);
}

/* -- Users ------------------------------------------------------------------------------------ */

static bool
read_number(const char *text, uint32_t *ret_number)
{
    int64_t number = 0;
    if (!lw_text_to_int(text, &number) || number < 0 || number >= UINT32_MAX) {
        return false;
    }
    *ret_number = (uint32_t)number;
    return true;
}

static bool
find_group(const char *name, gid_t *ret_gid)
{
    char buffer[16384];
    struct group group;
    struct group *found = NULL;
    if (read_number(name, ret_gid)) {
        return true;
    }
    if (getgrnam_r(name, &group, buffer, sizeof buffer, &found) != 0 || !found) {
        return false;
    }
    *ret_gid = group.gr_gid;
    return true;
}

static void
write_groups(struct account *account)
{
    gid_t groups[GROUPS_MAX];
    int count = GROUPS_MAX;
    size_t used = 0;
    if (getgrouplist(account->name, account->gid, groups, &count) < 0) {
        count = GROUPS_MAX; /* those that fit; the helper takes no more either */
    }
    for (int i = 0; i < count && used < sizeof account->groups; i++) {
        int length = snprintf(account->groups + used, sizeof account->groups - used, "%s%u",
                              i > 0 ? "," : "", (unsigned)groups[i]);
        used += length > 0 ? (size_t)length : 0;
    }
}

/* A number without an entry is a user too, with that number as its group. */
static bool
find_user(const char *name, struct account *account)
{
    char buffer[16384];
    struct passwd entry;
    struct passwd *found = NULL;
    uint32_t number = 0;
    bool is_number = read_number(name, &number);
    int failed = is_number ? getpwuid_r(number, &entry, buffer, sizeof buffer, &found)
                           : getpwnam_r(name, &entry, buffer, sizeof buffer, &found);
    if (failed == 0 && found) {
        account->uid = entry.pw_uid;
        account->gid = entry.pw_gid;
        lw_text_copy(account->name, sizeof account->name, entry.pw_name);
        lw_text_copy(account->home, sizeof account->home, entry.pw_dir);
        write_groups(account);
        return true;
    }
    account->uid = number;
    account->gid = number;
    (void)snprintf(account->groups, sizeof account->groups, "%" PRIu32, number);
    return is_number;
}

/* Answers NULL, or what is wrong with "NAME:GROUP". */
static const char *
read_account(const char *user, struct account *account)
{
    char name[NAME_BYTES_MAX];
    const char *colon = strchr(user, ':');
    size_t length = colon ? (size_t)(colon - user) : strlen(user);
    *account = (struct account){ .uid = 0 };
    if (length == 0 || length >= sizeof name) {
        return "is no name of a user";
    }
    lw_text_copy(name, length + 1, user);
    if (!find_user(name, account)) {
        return "is not a user of this system";
    }
    if (colon && !find_group(colon + 1, &account->gid)) {
        return "names a group that this system does not know";
    }
    return NULL;
}

/* Who may not change to another user may still name itself: then only no right is to be gained. */
static bool
is_us(const struct account *account)
{
    return geteuid() != 0 && account->uid == geteuid() && account->gid == getegid();
}

/* -- The words -------------------------------------------------------------------------------- */

/* A list of texts that grows; `is_failed` once for all. */
struct words {
    char **list;
    size_t count;
    size_t capacity;
    bool is_failed;
};

static void
add(struct words *words, const char *text)
{
    if (words->is_failed || words->count + 1 >= words->capacity) {
        words->is_failed = true;
        return;
    }
    words->list[words->count] = lw_copy_text(text);
    words->is_failed = words->list[words->count] == NULL;
    words->count += words->is_failed ? 0 : 1;
}

static void
add_option(struct words *words, const char *name, const char *value)
{
    if (value) {
        add(words, name);
        add(words, value);
    }
}

static void
add_number(struct words *words, const char *name, uint64_t number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    add_option(words, name, text);
}

/* Ours is never theirs: a user without a home has none, rather than that of root. */
static void
add_variable(struct words *words, const char *name, const char *value)
{
    char text[PATH_MAX + 32];
    (void)snprintf(text, sizeof text, "%s%s%s", name, value[0] ? "=" : "", value);
    add(words, text);
}

static void
free_words(char **list)
{
    for (char **word = list; word && *word; word++) {
        lw_free(*word);
    }
    lw_free(list);
}

static size_t
count_words(const char *const *list)
{
    size_t count = 0;
    while (list[count]) {
        count++;
    }
    return count;
}

static bool
open_words(struct words *words, size_t capacity)
{
    *words = (struct words){ .capacity = capacity };
    words->list = lw_alloc_array(capacity, sizeof *words->list);
    words->is_failed = words->list == NULL;
    return !words->is_failed;
}

static bool
write_command(const struct lw_programs_launch_request *request, const struct account *account,
              const char *helper, struct words *words)
{
    enum { OPTIONS_MAX = 16 };
    if (!open_words(words, OPTIONS_MAX + count_words(request->program))) {
        return false;
    }
    add(words, helper);
    if (request->limits->nofile > 0) {
        add_number(words, "--nofile", request->limits->nofile);
    }
    if (account && is_us(account)) {
        add(words, "--same-user");
    } else if (account) {
        add_number(words, "--uid", account->uid);
        add_number(words, "--gid", account->gid);
        add_option(words, "--groups", account->groups);
    }
    add_option(words, "--directory", request->directory);
    add_option(words, "--path", getenv("PATH")); // NOLINT(concurrency-mt-unsafe)
    add(words, "--");
    for (const char *const *word = request->program; *word; word++) {
        add(words, *word);
    }
    return !words->is_failed;
}

static bool
write_variables(const struct account *account, struct words *words)
{
    if (!open_words(words, 4)) {
        return false;
    }
    add_variable(words, "HOME", account->home);
    add_variable(words, "USER", account->name);
    add_variable(words, "LOGNAME", account->name);
    return !words->is_failed;
}

/* -- The trial -------------------------------------------------------------------------------- */

static size_t
index_of(char *const *argv, const char *word)
{
    size_t index = 0;
    while (strcmp(argv[index], word) != 0) {
        index++;
    }
    return index;
}

/* Reads one line of what it says; "" when it says nothing in time. */
static void
hear(int fd, char *out, size_t size)
{
    size_t used = 0;
    struct pollfd item = { .fd = fd, .events = POLLIN };
    out[0] = '\0';
    while (used + 1 < size && !strchr(out, '\n')) {
        int ready = poll(&item, 1, TRIAL_MS);
        ssize_t got = ready > 0 ? read(fd, out + used, size - used - 1) : 0;
        bool is_again = (ready < 0 || got < 0) && errno == EINTR;
        if (got <= 0 && !is_again) {
            break;
        }
        used += got > 0 ? (size_t)got : 0;
        out[used] = '\0';
    }
    out[strcspn(out, "\n")] = '\0';
}

/* "ok", or what cannot be set, or why it could not be tried. */
static void
try_command(char *const *argv, char *out, size_t size)
{
    const char *words[24] = { NULL };
    struct lw_programs_process process;
    size_t count = index_of(argv, "--");
    lw_text_copy(out, size, "");
    for (size_t i = 0; i < count; i++) {
        words[i] = argv[i];
    }
    words[count] = "--try";
    struct lw_programs_command command = { .program = words,
                                           .has_pidfd = lw_programs_process_has_pidfd() };
    int failed = lw_programs_process_spawn(&command, &process);
    if (failed) {
        (void)snprintf(out, size, "%s cannot be run: %s", argv[0], strerrordesc_np(failed));
        return;
    }
    hear(process.output, out, size);
    /* It is not reaped yet: may who it has become be signalled by us? */
    bool is_out_of_reach = kill(-process.pid, 0) != 0 && errno == EPERM;
    (void)lw_programs_process_end(&process);
    if (is_out_of_reach && strcmp(out, "ok") == 0) {
        lw_text_copy(out, size, "a process of that user could not be ended by Laneway");
    }
    if (!out[0]) {
        (void)snprintf(out, size, "%s said nothing", argv[0]);
    }
}

static const char *
help_for(const struct lw_programs_limits *limits, const char *said)
{
    if (strncmp(said, "nofile", strlen("nofile")) == 0) {
        return "it cannot be above the hard limit that Laneway has itself (ulimit -Hn; "
               "LimitNOFILE= of a unit); lower it, or raise that";
    }
    if (limits->user && strstr(said, "directory")) {
        return "the user must be able to enter it; change its owner or mode, or set "
               "\"directory\"";
    }
    bool is_refused = strstr(said, "cannot be set") || strstr(said, "could not be ended");
    if (limits->user && is_refused) {
        return "only root may start and end programs of another user (as a service: User=root, "
               "or CAP_SETUID, CAP_SETGID and CAP_KILL); leave \"user\" out to run them as "
               "Laneway";
    }
    return "laneway-exec belongs into libexec/laneway of the installation, and must belong to "
           "root or to the user that runs Laneway";
}

static enum lw_status
refuse(const char *handler, const char *what, const char *help, struct lw_error *ret_error)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_INVALID, "E0611",
                                         "handler \"%s\": %s", handler, what);
    lw_error_help(ret_error, "%s", help);
    return status;
}

static enum lw_status
refuse_user(const char *handler, const char *user, const char *why, struct lw_error *ret_error)
{
    char what[NAME_BYTES_MAX + 80];
    (void)snprintf(what, sizeof what, "user \"%.200s\" %s", user, why);
    return refuse(handler, what, "write a name or a number, and :GROUP after it if need be",
                  ret_error);
}

static enum lw_status
no_memory(struct lw_programs_launch *launch, struct lw_error *ret_error)
{
    lw_programs_launch_destroy(launch);
    return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
}

enum lw_status
lw_programs_launch_create(const struct lw_programs_launch_request *request,
                          struct lw_programs_launch *ret_launch, struct lw_error *ret_error)
{
    char helper[PATH_MAX];
    char said[512];
    struct account account;
    const struct lw_programs_limits *limits = request->limits;
    struct lw_programs_launch launch = { NULL, NULL };
    struct words command = { NULL, 0, 0, false };
    struct words variables = { NULL, 0, 0, false };
    bool has_user = limits->user && limits->user[0];
    const char *why = has_user ? read_account(limits->user, &account) : NULL;
    if (why) {
        return refuse_user(request->handler, limits->user, why, ret_error);
    }
    if (!lw_installed_find(helper_name, helper, sizeof helper)) {
        return refuse(request->handler, "its limits need laneway-exec, which is not installed",
                      help_for(limits, ""), ret_error);
    }
    bool has_words = write_command(request, has_user ? &account : NULL, helper, &command) &&
                     (!has_user || is_us(&account) || write_variables(&account, &variables));
    launch = (struct lw_programs_launch){ command.list, variables.list };
    if (!has_words) {
        return no_memory(&launch, ret_error);
    }
    try_command(launch.argv, said, sizeof said);
    if (strcmp(said, "ok") != 0) {
        lw_programs_launch_destroy(&launch);
        return refuse(request->handler, said, help_for(limits, said), ret_error);
    }
    *ret_launch = launch;
    return LW_STATUS_OK;
}

void
lw_programs_launch_destroy(struct lw_programs_launch *launch)
{
    free_words(launch->argv);
    free_words(launch->environment);
    *launch = (struct lw_programs_launch){ NULL, NULL };
}
