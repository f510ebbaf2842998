/* SPDX-License-Identifier: Apache-2.0 */
/*
 * laneway-exec: sets what a worker's process must have before its program runs, then becomes the
 * program. A process of its own, since between fork and exec of a program with threads nothing of
 * this may be done, and posix_spawn knows none of it. The order matters: limits while we may
 * still raise them, then the groups, the group, the user; then the folder, as that user sees it.
 * A user is set for good: nothing that the program runs can become somebody else again, and no
 * capability is left, those that a service gives us (AmbientCapabilities=) least of all.
 *
 *   laneway-exec [--nofile N] [--uid N --gid N [--groups N,N] | --same-user] [--directory DIR]
 *                [--path PATH] (--try | -- PROGRAM [ARGUMENT]...)
 *
 * --try sets everything, says "ok" or one sentence on standard output, and ends. Otherwise a
 * failure is a sentence on standard error and exit 126, or 127 when there is no such program.
 * Who starts it has checked the words; it does not allocate.
 */
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GROUPS_MAX = 1024, EXIT_CANNOT = 126, EXIT_ABSENT = 127, EXIT_USAGE = 64 };

struct wish {
    const char *nofile;
    const char *uid;
    const char *gid;
    const char *groups;
    const char *directory;
    const char *path;
    bool is_same_user; /* who we are already, but for good */
    bool is_trial;
    char **program;
};

/* Says why, and gives the exit code. */
static int
refuse(const struct wish *wish, const char *what, const char *name, int code, int failed)
{
    FILE *out = wish->is_trial ? stdout : stderr;
    (void)fprintf(out, "%s%s%s%s: %s\n", wish->is_trial ? "" : "laneway-exec: ", what,
                  name ? " " : "", name ? name : "", strerrordesc_np(failed));
    return code;
}

static bool
read_number(const char *text, unsigned long max, unsigned long *ret_number)
{
    char *end = NULL;
    errno = 0;
    *ret_number = strtoul(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && errno == 0 && *end == '\0' && *ret_number <= max;
}

static bool
read_groups(const char *text, gid_t *out, size_t *ret_count)
{
    *ret_count = 0;
    while (text && *text) {
        char *end = NULL;
        errno = 0;
        unsigned long number = strtoul(text, &end, 10);
        bool is_last = *end == '\0';
        if (end == text || errno != 0 || number > UINT_MAX || *ret_count == GROUPS_MAX ||
            (!is_last && *end != ',')) {
            return false;
        }
        out[(*ret_count)++] = (gid_t)number;
        text = is_last ? end : end + 1;
    }
    return true;
}

static int
set_nofile(const struct wish *wish)
{
    unsigned long number = 0;
    if (!wish->nofile) {
        return 0;
    }
    if (!read_number(wish->nofile, ULONG_MAX, &number)) {
        return refuse(wish, "nofile", wish->nofile, EXIT_CANNOT, EINVAL);
    }
    struct rlimit limit = { .rlim_cur = number, .rlim_max = number };
    return setrlimit(RLIMIT_NOFILE, &limit) == 0
               ? 0
               : refuse(wish, "nofile cannot be set to", wish->nofile, EXIT_CANNOT, errno);
}

/*
 * The kernel takes capabilities away when root becomes somebody else, and only then: who is
 * allowed to change users by an ambient capability would hand that on to the program.
 */
static int
drop_capabilities(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0, 0, 0 } };
    return (int)syscall(SYS_capset, &head, none);
}

static int
set_for_good(const struct wish *wish)
{
    if (geteuid() != 0 && drop_capabilities() != 0) {
        return refuse(wish, "capabilities cannot be dropped", NULL, EXIT_CANNOT, errno);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return refuse(wish, "new privileges cannot be forbidden", NULL, EXIT_CANNOT, errno);
    }
    return 0;
}

/*
 * Pipes belong to who made them, and to open one again by its name (echo > /dev/stderr) is asked
 * of its mode. Nobody finds these but who may look into the program's descriptors.
 */
static void
open_pipes_to_all(void)
{
    enum { LAST_FD = 3 };
    struct stat about;
    for (int fd = 0; fd <= LAST_FD; fd++) {
        if (fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode)) {
            (void)fchmod(fd, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
        }
    }
}

static int
set_user(const struct wish *wish)
{
    gid_t groups[GROUPS_MAX];
    size_t count = 0;
    unsigned long uid = 0;
    unsigned long gid = 0;
    if (!wish->uid) {
        return wish->is_same_user ? set_for_good(wish) : 0;
    }
    if (!wish->gid || !read_number(wish->uid, UINT_MAX - 1, &uid) ||
        !read_number(wish->gid, UINT_MAX - 1, &gid) ||
        !read_groups(wish->groups, groups, &count)) {
        return refuse(wish, "user", wish->uid, EXIT_CANNOT, EINVAL);
    }
    open_pipes_to_all();
    if (setgroups(count, groups) != 0) {
        return refuse(wish, "the groups of the user cannot be set", NULL, EXIT_CANNOT, errno);
    }
    if (setresgid((gid_t)gid, (gid_t)gid, (gid_t)gid) != 0) {
        return refuse(wish, "the group cannot be set to", wish->gid, EXIT_CANNOT, errno);
    }
    if (setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) != 0) {
        return refuse(wish, "the user cannot be set to", wish->uid, EXIT_CANNOT, errno);
    }
    return set_for_good(wish);
}

static int
set_directory(const struct wish *wish)
{
    return !wish->directory || chdir(wish->directory) == 0
               ? 0
               : refuse(wish, "cannot enter the directory", wish->directory, EXIT_CANNOT,
                        errno);
}

/* Like execvp, but by the PATH that is given, and without a shell for what is no program. */
static int
run(const struct wish *wish)
{
    const char *name = wish->program[0];
    const char *path = wish->path ? wish->path : "/usr/local/bin:/usr/bin:/bin";
    int failed = ENOENT;
    if (strchr(name, '/')) {
        (void)execv(name, wish->program);
        failed = errno;
    }
    while (!strchr(name, '/') && path) {
        char full[PATH_MAX];
        int length = (int)strcspn(path, ":");
        int written = snprintf(full, sizeof full, "%.*s%s%s", length, path,
                               length > 0 ? "/" : "", name);
        if (written > 0 && (size_t)written < sizeof full) {
            (void)execv(full, wish->program);
            failed = errno != ENOENT && errno != ENOTDIR ? errno : failed;
        }
        path = path[length] == ':' ? path + length + 1 : NULL;
    }
    return refuse(wish, "cannot run", name, failed == ENOENT ? EXIT_ABSENT : EXIT_CANNOT,
                  failed);
}

static const char **
place_of(struct wish *wish, const char *word)
{
    const struct {
        const char *name;
        const char **place;
    } options[] = {
        { "--nofile", &wish->nofile }, { "--uid", &wish->uid },
        { "--gid", &wish->gid },       { "--groups", &wish->groups },
        { "--path", &wish->path },     { "--directory", &wish->directory },
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(word, options[i].name) == 0) {
            return options[i].place;
        }
    }
    return NULL;
}

static bool
read_words(struct wish *wish, char **words)
{
    for (; *words; words++) {
        const char **place = place_of(wish, *words);
        if (strcmp(*words, "--") == 0) {
            wish->program = words + 1;
            return words[1] != NULL;
        }
        if (strcmp(*words, "--try") == 0) {
            wish->is_trial = true;
        } else if (strcmp(*words, "--same-user") == 0) {
            wish->is_same_user = true;
        } else if (place && words[1]) {
            *place = *++words;
        } else {
            return false;
        }
    }
    return wish->is_trial;
}

int
main(int argc, char **argv)
{
    struct wish wish = { .is_trial = false };
    if (argc < 2 || !read_words(&wish, argv + 1)) {
        (void)fprintf(stderr,
                      "laneway-exec: started by Laneway only; see `laneway help run`\n");
        return EXIT_USAGE;
    }
    int exit_code = set_nofile(&wish);
    exit_code = exit_code ? exit_code : set_user(&wish);
    exit_code = exit_code ? exit_code : set_directory(&wish);
    if (exit_code || wish.is_trial) {
        (void)fprintf(stdout, "%s", exit_code ? "" : "ok\n");
        return exit_code;
    }
    return run(&wish);
}
