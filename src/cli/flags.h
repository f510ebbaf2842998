/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flags of a command as rows: parsing, help and suggestions come from them. Flags and other
 * words may be mixed; "--" ends the flags; "--name=value", "--name value", "-nvalue", "-n value"
 * and "-ab" are understood. Flags that several commands share (the LW_ROW_… below) are stored in
 * struct lw_cli by the parser itself and are never returned.
 */
#ifndef LW_CLI_FLAGS_H
#define LW_CLI_FLAGS_H

struct lw_cli;

struct lw_flag {
    int id;               /* its letter, or a number from LW_FLAG_OWN for a flag without one */
    const char *name;     /* without the dashes */
    const char *argument; /* what its value is called in the help; NULL: it has none */
    const char *doc;      /* NULL: not shown, for tests */
};

enum {
    LW_FLAG_END = 0,   /* all words were read */
    LW_FLAG_STOP = -1, /* help was shown or a word was wrong: return cli->exit_code */
    LW_FLAG_OWN = 1000,
    LW_FLAG_SET = 2000,
    LW_FLAG_ENV_FILE,
    LW_FLAG_URL,
    LW_FLAG_JSON,
    LW_FLAG_COLOR
};

/* Returns the id of the next flag that is the command's own; its value is in cli->value. */
int lw_cli_next(struct lw_cli *cli);
/* True when `value` is a whole number within the bounds; else says so, for exit code 64. */
_Bool lw_cli_number(struct lw_cli *cli, const char *name, long long min, long long max,
                    long long *ret_value);

#define LW_ROW_CONFIG                                                                          \
    {                                                                                          \
        'c', "config", "FILE", "a configuration file; may be given again, later ones win"      \
    }
#define LW_ROW_SET                                                                             \
    {                                                                                          \
        LW_FLAG_SET, "set", "PATH=VALUE", "sets one value, such as service.concurrency=40"     \
    }
#define LW_ROW_PROPERTY                                                                        \
    {                                                                                          \
        'X', "property", "BROKER:NAME=VALUE",                                                  \
            "sets a property of a broker's client, such as main:ssl.ca.location=ca.pem"        \
    }
#define LW_ROW_ENV_FILE                                                                        \
    {                                                                                          \
        LW_FLAG_ENV_FILE, "env-file", "FILE", "reads NAME=VALUE lines, below the environment"  \
    }
#define LW_ROW_URL                                                                             \
    {                                                                                          \
        LW_FLAG_URL, "url", "URL",                                                             \
            "the running service, such as unix:/run/laneway/orders.sock"                       \
    }
#define LW_ROW_JSON                                                                            \
    {                                                                                          \
        LW_FLAG_JSON, "json", NULL, "prints JSON"                                              \
    }
#define LW_ROW_QUIET                                                                           \
    {                                                                                          \
        'q', "quiet", NULL, "says less: only errors"                                           \
    }
#define LW_ROW_VERBOSE                                                                         \
    {                                                                                          \
        'v', "verbose", NULL, "says more; twice: still more"                                   \
    }
#define LW_ROW_COLOR                                                                           \
    {                                                                                          \
        LW_FLAG_COLOR, "color", "WHEN", "auto, always or never"                                \
    }
#define LW_ROW_END                                                                             \
    {                                                                                          \
        0, NULL, NULL, NULL                                                                    \
    }

#endif
