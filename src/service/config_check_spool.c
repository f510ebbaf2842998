/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One owner for a spool's file: two brokers of one configuration cannot have the same. The folder
 * is asked for its real name, and a file that is there for its identity, so that links and other
 * spellings are seen as well; what is not there yet is compared by its name.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "service/config_check.h"

static const char *
path_of(const struct lw_config_broker *broker)
{
    static const char scheme[] = "spool:";
    bool is_spool = broker->kind == LW_CONFIG_SPOOL && broker->url &&
                    strncmp(broker->url, scheme, sizeof scheme - 1) == 0;
    return is_spool ? broker->url + sizeof scheme - 1 : NULL;
}

static bool
is_same_folder(const char *a, size_t a_size, const char *b, size_t b_size)
{
    char name[PATH_MAX];
    struct stat left;
    struct stat right;
    if (a_size >= sizeof name || b_size >= sizeof name) {
        return false;
    }
    memcpy(name, a, a_size);
    name[a_size] = '\0';
    if (stat(name, &left) != 0) {
        return a_size == b_size && memcmp(a, b, a_size) == 0;
    }
    memcpy(name, b, b_size);
    name[b_size] = '\0';
    return stat(name, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

/* The last part; what is before it is the folder, "." when there is nothing. */
static const char *
split(const char *path, const char **ret_folder, size_t *ret_size)
{
    const char *slash = strrchr(path, '/');
    *ret_folder = slash ? path : ".";
    *ret_size = slash ? (size_t)(slash - path) + 1 : 1;
    return slash ? slash + 1 : path;
}

static bool
is_same_file(const char *a, const char *b)
{
    struct stat left;
    struct stat right;
    const char *folders[2];
    size_t sizes[2];
    if (stat(a, &left) == 0 && stat(b, &right) == 0) {
        return left.st_dev == right.st_dev && left.st_ino == right.st_ino;
    }
    const char *a_name = split(a, &folders[0], &sizes[0]);
    const char *b_name = split(b, &folders[1], &sizes[1]);
    return strcmp(a_name, b_name) == 0 &&
           is_same_folder(folders[0], sizes[0], folders[1], sizes[1]);
}

static void
refuse(struct lw_config_build *build, const struct lw_config_broker *first,
       const struct lw_config_broker *second)
{
    const struct lw_node *node = lw_node_child(second->node, "url");
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0315", &node->place,
        "the brokers \"%s\" and \"%s\" are one file", first->name, second->name);
    lw_diagnostic_show(item, &lw_node_child(first->node, "url")->place);
    lw_diagnostic_help(item, "name it once, and use \"%s\" in every pipeline", first->name);
}

/* The first broker before it that has the same file, or NULL. */
static const struct lw_config_broker *
find_twin(const struct lw_config *config, const struct lw_config_broker *broker)
{
    const char *path = path_of(broker);
    for (const struct lw_config_broker *one = config->brokers; path && one < broker; one++) {
        const char *other = path_of(one);
        if (other && is_same_file(path, other)) {
            return one;
        }
    }
    return NULL;
}

void
lw_config_check_spool(struct lw_config_build *build)
{
    const struct lw_config *config = build->config;
    for (size_t i = 0; i < config->broker_count; i++) {
        const struct lw_config_broker *twin = find_twin(config, &config->brokers[i]);
        if (twin) {
            refuse(build, twin, &config->brokers[i]);
        }
    }
}
