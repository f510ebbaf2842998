/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates made on the spot, as PEM files in a folder of their own: authorities, servers,
 * clients, with the names and times that a test wants.
 */
#ifndef TESTS_BROKERS_PULSAR_CERTIFICATES_H
#define TESTS_BROKERS_PULSAR_CERTIFICATES_H

struct certificates {
    char folder[64];
};

struct certificate_wish {
    const char *name;   /* NAME.pem and NAME.key are written */
    const char *issuer; /* name of the authority; NULL: signed by itself */
    const char *hosts;  /* "DNS:localhost,IP:127.0.0.1"; NULL: none */
    long from_s;        /* validity, from now; 0, 0: an hour both ways */
    long to_s;
    int is_authority;
};

void certificates_init(struct certificates *certificates);
void certificates_deinit(struct certificates *certificates); /* removes the folder */
void certificates_make(struct certificates *certificates, const struct certificate_wish *wish);
/* "FOLDER/NAME"; overwritten by the call after the next 63. */
const char *certificates_path(const struct certificates *certificates, const char *name);

#endif
