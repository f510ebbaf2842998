/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c: gives every file of a corpus folder to a fuzz target, as an ordinary test. Fails when
 * the folder holds no input, and when one input takes more than 50 ms (LANEWAY_REPLAY_MS) in the
 * best of five tries: a parser whose time explodes is a fault as much as one that crashes. Each
 * input lies in a block of exactly its size, so that a sanitizer sees a read past its end.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { TRIES_MAX = 5, LIMIT_MS = 50, PATH_BYTES_MAX = 4096 };

struct input {
    uint8_t *bytes;
    size_t size;
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static double
now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool
read_input(const char *path, struct input *ret_input)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &info) != 0) {
        perror(path);
        exit(1);
    }
    bool is_file = S_ISREG(info.st_mode);
    if (is_file) {
        ret_input->size = (size_t)info.st_size;
        ret_input->bytes = malloc(ret_input->size);
        if (fread(ret_input->bytes, 1, ret_input->size, file) != ret_input->size) {
            perror(path);
            exit(1);
        }
    }
    fclose(file);
    return is_file;
}

static double
best_time_ms(const struct input *input, double limit_ms)
{
    double best = 0;
    for (int i = 0; i < TRIES_MAX && (i == 0 || best > limit_ms); i++) {
        double begin = now_ms();
        LLVMFuzzerTestOneInput(input->bytes, input->size);
        double taken = now_ms() - begin;
        best = i == 0 || taken < best ? taken : best;
    }
    return best;
}

static bool
replay_file(const char *path, double limit_ms, int *failures)
{
    struct input input = { 0 };
    if (!read_input(path, &input)) {
        return false;
    }
    double taken_ms = best_time_ms(&input, limit_ms);
    free(input.bytes);
    if (taken_ms > limit_ms) {
        printf("%s: %.1f ms, limit %.1f ms\n", path, taken_ms, limit_ms);
        (*failures)++;
    }
    return true;
}

int
main(int argc, char **argv)
{
    const char *limit_text = getenv("LANEWAY_REPLAY_MS");
    double limit_ms = limit_text != NULL ? strtod(limit_text, NULL) : LIMIT_MS;
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (folder == NULL) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER (%s)\n", argv[0], strerror(errno));
        return 1;
    }
    int count = 0;
    int failures = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[PATH_BYTES_MAX];
        snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        count += entry->d_name[0] != '.' && replay_file(path, limit_ms, &failures) ? 1 : 0;
    }
    closedir(folder);
    printf("%d inputs, %d too slow\n", count, failures);
    return count == 0 || failures > 0;
}
