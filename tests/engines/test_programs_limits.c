/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_programs_limits.c: what a worker may use and whom it runs as. Over a limit it is killed
 * with all its children, its message is charged and the rest goes on; what cannot be set is an
 * error of the start. Tests of other users need root and are left out without it.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/installed.h"
#include "tests/engines/programs_world.h"

#define MB UINT64_C(1000000)

static struct world *
open_limited(struct lw_programs_limits limits, uint32_t window)
{
    struct lw_programs_options options = programs_options("obey.py", NULL);
    options.limits = limits;
    options.window = window;
    options.timeout_ms = 60000;
    return programs_open_world("obey.py", NULL, NULL, &options);
}

/* What it replied, as a text. */
static const char *
reply_of(const struct lw_delivery *delivery)
{
    static char text[256];
    struct lw_bytes reply = world_reply_of(delivery);
    (void)snprintf(text, sizeof text, "%.*s", (int)reply.size, (const char *)reply.data);
    return text;
}

static const char *
ask(struct world *world, const char *command)
{
    struct lw_delivery *delivery = world_run(world, command);
    world_wait_results(world, world->delivery_count);
    return reply_of(delivery);
}

static bool
is_dead(int pid)
{
    char path[64];
    char stat[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) {
        return true;
    }
    size_t size = fread(stat, 1, sizeof stat - 1, file);
    stat[size] = '\0';
    fclose(file);
    const char *state = strrchr(stat, ')');
    return state && state[2] == 'Z';
}

/* -- Memory ------------------------------------------------------------------------------------ */

static void
one_that_leaks_is_killed_and_charged_and_the_rest_goes_on(void **state)
{
    struct world *world = open_limited((struct lw_programs_limits){ .memory_max = 200 * MB },
                                       1);
    (void)state;
    struct lw_delivery *before = world_run(world, "ok");
    struct lw_delivery *leak = world_run(world, "leak 1000");
    struct lw_delivery *after = world_run(world, "ok");
    world_wait_results(world, 3);
    assert_int_equal(before->verdict, LW_OK);
    assert_int_equal(leak->verdict, LW_ERROR);
    assert_false(leak->outcome->is_uncharged);
    assert_int_equal(leak->outcome->signal, 9);
    assert_non_null(strstr(lw_delivery_reason(leak), " of memory, memory_max is 200MB"));
    assert_int_equal(after->verdict, LW_OK);
    assert_int_equal(world->engine->restarts, 1);
    assert_false(world->engine->is_down);
    world_destroy(world);
}

static void
of_several_open_only_the_one_that_leaks_is_charged(void **state)
{
    static const char *const commands[] = { "ok", "leak 1000", "ok", "reply yes" };
    struct world *world = open_limited((struct lw_programs_limits){ .memory_max = 200 * MB },
                                       4);
    (void)state;
    world_wait(world, world_engine_has_room);
    for (size_t i = 0; i < 4; i++) {
        assert_true(world_submit(world, world_delivery(world, commands[i])));
    }
    world_wait_results(world, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(world->deliveries[i].verdict, i == 1 ? LW_ERROR : LW_OK);
        assert_int_equal(world->deliveries[i].attempt, 1);
    }
    world_destroy(world);
}

static void
the_memory_of_its_children_counts(void **state)
{
    struct world *world = open_limited((struct lw_programs_limits){ .memory_max = 200 * MB },
                                       1);
    (void)state;
    struct lw_delivery *leak = world_run(world, "leak-child 1000");
    world_wait_results(world, 1);
    assert_non_null(strstr(lw_delivery_reason(leak), "of memory, memory_max is 200MB"));
    assert_string_equal(ask(world, "reply yes"), "yes");
    world_destroy(world);
}

/* It is over its limit with nothing to do: nobody is charged, and it is not tried for ever. */
static void
a_program_that_starts_above_its_limit_is_down(void **state)
{
    struct lw_programs_options options = programs_options("manners.py", "slow");
    (void)state;
    options.limits.memory_max = 1;
    struct world *world = programs_open_world("manners.py", "slow", "20000", &options);
    world_wait(world, world_engine_is_down);
    assert_string_equal(world->engine->down_error.code, "E0602");
    assert_non_null(strstr(world->engine->down_error.message, "of memory, memory_max is 1B"));
    assert_int_equal(world->result_count, 0);
    world_destroy(world);
}

/* -- Time --------------------------------------------------------------------------------------- */

static void
one_that_spins_is_killed_and_one_that_waits_is_not(void **state)
{
    struct world *world = open_limited((struct lw_programs_limits){ .cpu_max_ms = 1000 }, 1);
    (void)state;
    struct lw_delivery *waits = world_run(world, "wait 2000 ok");
    struct lw_delivery *spins = world_run(world, "spin 60000");
    struct lw_delivery *after = world_run(world, "ok");
    world_wait_results(world, 3);
    assert_int_equal(waits->verdict, LW_OK);
    assert_int_equal(spins->verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(spins),
                        "the handler's process ended: it used more processor time on one "
                        "message than cpu_max, 1s");
    assert_int_equal(after->verdict, LW_OK);
    world_destroy(world);
}

/* What a worker used for the messages before is not held against the next one. */
static void
processor_time_is_counted_for_each_message_anew(void **state)
{
    struct world *world = open_limited((struct lw_programs_limits){ .cpu_max_ms = 1000 }, 1);
    (void)state;
    for (int i = 0; i < 4; i++) {
        world_run(world, "spin 600");
    }
    world_wait_results(world, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(world->deliveries[i].verdict, LW_OK);
    }
    assert_int_equal(world->engine->restarts, 0);
    world_destroy(world);
}

/* -- Its group ---------------------------------------------------------------------------------- */

static void
children_that_outlive_it_are_killed_with_its_group(void **state)
{
    int pids[4] = { 0 };
    struct world *world = open_limited((struct lw_programs_limits){ .nofile = 0 }, 1);
    (void)state;
    const char *told = ask(world, "brood 4");
    assert_int_equal(sscanf(told, "%d %d %d %d", &pids[0], &pids[1], &pids[2], &pids[3]), 4);
    struct lw_delivery *gone = world_run(world, "exit 3");
    world_wait_results(world, 2);
    assert_int_equal(gone->verdict, LW_ERROR);
    for (size_t i = 0; i < 4; i++) {
        for (int turn = 0; turn < WORLD_WAIT_MS && !is_dead(pids[i]); turn++) {
            world_spend(world, 1);
        }
        assert_true(is_dead(pids[i]));
    }
    assert_string_equal(ask(world, "reply yes"), "yes");
    world_destroy(world);
}

static void
one_that_ignores_term_and_closes_its_output_is_killed(void **state)
{
    struct world *world = open_limited((struct lw_programs_limits){ .nofile = 0 }, 1);
    (void)state;
    struct lw_delivery *mute = world_run(world, "stubborn-mute");
    world_wait_results(world, 1);
    assert_int_equal(mute->verdict, LW_ERROR);
    assert_false(mute->outcome->is_uncharged);
    assert_int_equal(mute->outcome->signal, 9);
    assert_string_equal(ask(world, "reply yes"), "yes");
    world_destroy(world);
}

/* -- Before the program runs ------------------------------------------------------------------- */

static void
nofile_is_both_limits_of_the_program(void **state)
{
    struct world *world = open_limited((struct lw_programs_limits){ .nofile = 77 }, 1);
    (void)state;
    assert_string_equal(ask(world, "limit RLIMIT_NOFILE"), "77 77");
    assert_string_equal(ask(world, "descriptors"), "0 1 2 3 4");
    world_destroy(world);
}

static void
the_directory_and_the_variables_are_the_same_by_way_of_the_helper(void **state)
{
    static const char *const environment[] = { "COLOUR=blue", "HOME=/nowhere", NULL };
    struct lw_programs_options options = programs_options("obey.py", NULL);
    (void)state;
    options.limits.nofile = 99;
    options.directory = "/usr";
    options.environment = environment;
    struct world *world = programs_open_world("obey.py", NULL, NULL, &options);
    assert_string_equal(ask(world, "cwd"), "/usr");
    assert_string_equal(ask(world, "env COLOUR"), "blue");
    assert_string_equal(ask(world, "env HOME"), "/nowhere");
    assert_string_equal(ask(world, "env LANEWAY_HANDLER"), "obey");
    world_destroy(world);
}

/* It never said a word, but it is not the words that were wrong. */
static void
a_program_that_the_helper_cannot_run_is_named(void **state)
{
    const char *program[] = { "no-such-handler", NULL };
    struct world *world = world_create();
    struct lw_programs_options options = programs_options("obey.py", NULL);
    (void)state;
    options.program = program;
    options.protocol = LW_PROTOCOL_FRAMES;
    options.limits.nofile = 99;
    programs_create(world, &options);
    world_wait(world, world_engine_is_down);
    assert_non_null(strstr(world->engine->down_error.message,
                           "cannot start: no-such-handler: exit 127 before its first answer"));
    assert_null(strstr(world->engine->down_error.message, "spoken to in frames"));
    assert_non_null(
        strstr(world->engine->down_error.help,
               "laneway-exec: cannot run no-such-handler: No such file or directory"));
    world_destroy(world);
}

/* Starts the engine, which must be refused. */
static struct lw_error
expect_refusal(struct lw_programs_limits limits, const char *directory)
{
    struct lw_error error = { .code = "" };
    struct world *world = world_create();
    struct lw_programs_options options = programs_options("obey.py", NULL);
    options.limits = limits;
    options.directory = directory;
    assert_int_equal(lw_programs_engine_create(world->host, &world->completions, "obey",
                                               &options, &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(world->engine->ops->start(world->engine, &error), LW_STATUS_INVALID);
    assert_string_equal(error.code, "E0611");
    assert_true(error.help[0]);
    world_destroy(world);
    return error;
}

static void
a_limit_that_cannot_be_set_is_an_error_of_the_start(void **state)
{
    struct lw_error error = expect_refusal((struct lw_programs_limits){ .nofile = UINT32_MAX },
                                           NULL);
    (void)state;
    assert_string_equal(error.message, "handler \"obey\": nofile cannot be set to 4294967295: "
                                       "Operation not permitted");
    assert_non_null(strstr(error.help, "hard limit"));
}

static void
an_unknown_user_is_an_error_of_the_start(void **state)
{
    static const char *const users[][2] = {
        { "no-such-user-here", "is not a user of this system" },
        { "root:no-such-group-here", "names a group that this system does not know" },
        { ":root", "is no name of a user" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        struct lw_error error = expect_refusal(
            (struct lw_programs_limits){ .user = users[i][0] }, NULL);
        assert_non_null(strstr(error.message, users[i][0]));
        assert_non_null(strstr(error.message, users[i][1]));
    }
}

static void
who_we_are_already_needs_no_rights(void **state)
{
    char user[64];
    char wanted[128];
    (void)state;
    (void)snprintf(user, sizeof user, "%u:%u", (unsigned)geteuid(), (unsigned)getegid());
    struct world *world = open_limited((struct lw_programs_limits){ .user = user }, 1);
    (void)snprintf(wanted, sizeof wanted, "%u %u %u", (unsigned)geteuid(), (unsigned)geteuid(),
                   (unsigned)geteuid());
    assert_memory_equal(ask(world, "who"), wanted, strlen(wanted));
    world_destroy(world);
}

static void
another_user_is_set_for_good(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("left out: only root may start programs as another user\n");
        return;
    }
    assert_int_equal(setenv("HOME", "/root", 1), 0); /* not a home for others */
    struct world *world = open_limited((struct lw_programs_limits){ .user = "4711:4712" }, 1);
    assert_string_equal(ask(world, "who"), "4711 4711 4711 4712 4712 4712 4711");
    assert_string_equal(ask(world, "env HOME"), "-");
    assert_string_equal(ask(world, "env USER"), "-");
    assert_string_equal(ask(world, "status CapEff:"), "0000000000000000");
    assert_string_equal(ask(world, "status NoNewPrivs:"), "1");
    world_destroy(world);
}

static void
a_user_of_the_system_brings_its_home_and_its_name(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("left out: only root may start programs as another user\n");
        return;
    }
    struct passwd *nobody = getpwnam("nobody");
    assert_non_null(nobody);
    struct world *world = open_limited((struct lw_programs_limits){ .user = "nobody" }, 1);
    assert_string_equal(ask(world, "env USER"), "nobody");
    assert_string_equal(ask(world, "env LOGNAME"), "nobody");
    assert_string_equal(ask(world, "env HOME"), nobody->pw_dir);
    world_destroy(world);
}

static void
a_directory_that_the_user_may_not_enter_is_an_error_of_the_start(void **state)
{
    char directory[] = "/tmp/laneway-test-XXXXXX";
    (void)state;
    if (geteuid() != 0) {
        print_message("left out: only root may start programs as another user\n");
        return;
    }
    assert_non_null(mkdtemp(directory)); /* 0700, root's */
    struct lw_error error = expect_refusal((struct lw_programs_limits){ .user = "4711" },
                                           directory);
    (void)rmdir(directory);
    assert_non_null(strstr(error.message, "cannot enter the directory /tmp/laneway-test-"));
    assert_non_null(strstr(error.help, "must be able to enter it"));
}

/* -- A service that is not root ----------------------------------------------------------------- */

enum { SERVICE = 4700, LEFT_OUT = 77, CHANGES_USERS = 1 << CAP_SETUID | 1 << CAP_SETGID };

/* As systemd starts one: a user of its own, and some rights of root, which exec keeps. */
static bool
become_service(uint32_t rights)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { rights, rights, rights },
                                                                     { 0, 0, 0 } };
    bool is_done = prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setgroups(0, NULL) == 0 &&
                   setresgid(SERVICE, SERVICE, SERVICE) == 0 &&
                   setresuid(SERVICE, SERVICE, SERVICE) == 0 &&
                   syscall(SYS_capset, &head, data) == 0;
    for (unsigned long right = 0; is_done && right < 32; right++) {
        is_done = (rights >> right & 1) == 0 ||
                  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, right, 0, 0) == 0;
    }
    return is_done;
}

/* Runs it as such a service in a process of its own; the exit code, or LEFT_OUT. */
static int
in_service(uint32_t rights, int (*run)(const char *helper, const void *user), const void *user)
{
    char helper[PATH_MAX];
    int status = 0;
    if (geteuid() != 0) {
        print_message("left out: only root can start as a service does\n");
        return LEFT_OUT;
    }
    assert_true(lw_installed_find("laneway-exec", helper, sizeof helper));
    pid_t child = fork();
    if (child == 0) {
        bool may_run = become_service(rights) && access(helper, X_OK) == 0;
        _exit(may_run ? run(helper, user) : LEFT_OUT);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == LEFT_OUT) {
        print_message("left out: the folder or the system does not let a service do that\n");
    }
    return WEXITSTATUS(status);
}

struct shown {
    const char *const *who;
    int output;
};

static int
show_status(const char *helper, const void *user)
{
    const struct shown *shown = user;
    const char *words[16] = { helper };
    size_t count = 1;
    for (size_t i = 0; shown->who[i]; i++) {
        words[count++] = shown->who[i];
    }
    words[count++] = "--";
    words[count++] = "cat";
    words[count] = "/proc/self/status";
    (void)dup2(shown->output, STDOUT_FILENO);
    (void)execv(helper, (char *const *)(uintptr_t)words);
    return 99;
}

static void
expect_no_rights(const char *const *who)
{
    static const char *const fields[] = { "CapInh", "CapPrm", "CapEff", "CapAmb" };
    char text[8192] = "";
    char wanted[64];
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const struct shown shown = { who, ends[1] };
    int code = in_service(CHANGES_USERS, show_status, &shown);
    (void)close(ends[1]);
    ssize_t size = read(ends[0], text, sizeof text - 1);
    (void)close(ends[0]);
    if (code == LEFT_OUT) {
        return;
    }
    assert_int_equal(code, 0);
    assert_true(size > 0);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        (void)snprintf(wanted, sizeof wanted, "%s:\t0000000000000000\n", fields[i]);
        assert_non_null(strstr(text, wanted));
    }
    assert_non_null(strstr(text, "NoNewPrivs:\t1\n"));
}

/* Or the program could become anybody, root too: it was our right to change users. */
static void
what_a_service_may_do_is_not_handed_on_to_another_user(void **state)
{
    static const char *const who[] = { "--uid", "4711", "--gid", "4712", NULL };
    (void)state;
    expect_no_rights(who);
}

static void
nor_to_the_same_user_that_was_asked_for(void **state)
{
    static const char *const who[] = { "--same-user", NULL };
    (void)state;
    expect_no_rights(who);
}

/* Tries to set a user; 0: it can be, 1: it cannot, for want of a right to end its processes. */
static int
try_user(const char *helper, const void *user)
{
    static const char *const program[] = { "cat", NULL };
    struct lw_programs_limits limits = { .user = user };
    const struct lw_programs_launch_request request = { .limits = &limits,
                                                        .handler = "h",
                                                        .program = program };
    struct lw_programs_launch launch;
    struct lw_error error = { .code = "" };
    (void)helper;
    if (lw_programs_launch_create(&request, &launch, &error) == LW_STATUS_OK) {
        lw_programs_launch_destroy(&launch);
        return 0;
    }
    return strstr(error.message, "could not be ended") && strstr(error.help, "CAP_KILL") ? 1
                                                                                         : 2;
}

static void
a_user_whose_processes_we_cannot_end_is_an_error_of_the_start(void **state)
{
    (void)state;
    int without = in_service(CHANGES_USERS, try_user, "4711");
    int with = in_service(CHANGES_USERS | 1 << CAP_KILL, try_user, "4711");
    int ourselves = in_service(0, try_user, "4700:4700");
    assert_true(without == LEFT_OUT || without == 1);
    assert_true(with == LEFT_OUT || with == 0);
    assert_true(ourselves == LEFT_OUT || ourselves == 0);
}

/* -- A process for each message ----------------------------------------------------------------- */

/* What is in the value runs as a program of Python; what it prints is the reply. */
static struct world *
open_once(struct lw_programs_limits limits)
{
    static const char *const program[] = { "python3", "-S", "-c",
                                           "import sys; exec(sys.stdin.read())", NULL };
    struct lw_programs_options options = programs_options("obey.py", NULL);
    struct world *world = world_create();
    options.program = program;
    options.protocol = LW_PROTOCOL_ONCE;
    options.has_reply = true;
    options.limits = limits;
    options.timeout_ms = 60000;
    programs_create(world, &options);
    return world;
}

static void
a_run_for_one_message_is_killed_over_its_limits(void **state)
{
    struct world *world = open_once(
        (struct lw_programs_limits){ .memory_max = 200 * MB, .cpu_max_ms = 1000 });
    (void)state;
    struct lw_delivery *leak = world_run(
        world, "import time\nkept = []\nwhile len(kept) < 100:\n"
               "    kept.append(b'1' * 10000000)\n    time.sleep(0.02)\n");
    struct lw_delivery *spin = world_run(world, "while True: pass");
    struct lw_delivery *well = world_run(world, "print('yes', end='')");
    world_wait_results(world, 3);
    assert_int_equal(leak->verdict, LW_ERROR);
    assert_int_equal(leak->outcome->signal, 9);
    assert_non_null(strstr(lw_delivery_reason(leak), " of memory, memory_max is 200MB"));
    assert_string_equal(lw_delivery_reason(spin),
                        "the handler's process ended: it used more processor time on one "
                        "message than cpu_max, 1s");
    assert_string_equal(reply_of(well), "yes");
    world_destroy(world);
}

/* As `echo > /dev/stderr` does in scripts: the pipes are those of who made them. */
static void
another_user_may_open_its_standard_streams_by_name(void **state)
{
    static const char *const program =
        "for number in (2, 1):\n"
        "    with open(f'/proc/self/fd/{number}', 'w') as stream: stream.write('yes')\n";
    (void)state;
    if (geteuid() != 0) {
        print_message("left out: only root may start programs as another user\n");
        return;
    }
    struct world *world = open_once((struct lw_programs_limits){ .user = "4711" });
    assert_string_equal(ask(world, program), "yes");
    assert_true(world_has_logged(world, "handler.output: yes"));
    world_destroy(world);
}

static void
a_run_for_one_message_has_its_files_and_its_user(void **state)
{
    static const char *const program =
        "import os, resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[1], "
        "os.getuid(), "
        "os.environ['LANEWAY_TOPIC'], end='')";
    struct lw_programs_limits limits = { .nofile = 88, .user = "4711" };
    (void)state;
    if (geteuid() != 0) {
        print_message("left out: only root may start programs as another user\n");
        return;
    }
    struct world *world = open_once(limits);
    assert_string_equal(ask(world, program), "88 4711 orders");
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_leaks_is_killed_and_charged_and_the_rest_goes_on),
        cmocka_unit_test(of_several_open_only_the_one_that_leaks_is_charged),
        cmocka_unit_test(the_memory_of_its_children_counts),
        cmocka_unit_test(a_program_that_starts_above_its_limit_is_down),
        cmocka_unit_test(one_that_spins_is_killed_and_one_that_waits_is_not),
        cmocka_unit_test(processor_time_is_counted_for_each_message_anew),
        cmocka_unit_test(children_that_outlive_it_are_killed_with_its_group),
        cmocka_unit_test(one_that_ignores_term_and_closes_its_output_is_killed),
        cmocka_unit_test(nofile_is_both_limits_of_the_program),
        cmocka_unit_test(the_directory_and_the_variables_are_the_same_by_way_of_the_helper),
        cmocka_unit_test(a_program_that_the_helper_cannot_run_is_named),
        cmocka_unit_test(a_limit_that_cannot_be_set_is_an_error_of_the_start),
        cmocka_unit_test(an_unknown_user_is_an_error_of_the_start),
        cmocka_unit_test(who_we_are_already_needs_no_rights),
        cmocka_unit_test(another_user_is_set_for_good),
        cmocka_unit_test(a_user_of_the_system_brings_its_home_and_its_name),
        cmocka_unit_test(a_directory_that_the_user_may_not_enter_is_an_error_of_the_start),
        cmocka_unit_test(what_a_service_may_do_is_not_handed_on_to_another_user),
        cmocka_unit_test(nor_to_the_same_user_that_was_asked_for),
        cmocka_unit_test(a_user_whose_processes_we_cannot_end_is_an_error_of_the_start),
        cmocka_unit_test(a_run_for_one_message_is_killed_over_its_limits),
        cmocka_unit_test(another_user_may_open_its_standard_streams_by_name),
        cmocka_unit_test(a_run_for_one_message_has_its_files_and_its_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
