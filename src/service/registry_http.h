/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's part for handlers behind HTTP. */
#ifndef LW_SERVICE_REGISTRY_HTTP_H
#define LW_SERVICE_REGISTRY_HTTP_H

#include "service/registry.h"
#include "service/service.h"

/* `slots`: requests at once where the options say none. */
enum lw_status
lw_registry_http(struct lw_dispatcher *dispatcher, const struct lw_engine_request *request,
                 uint32_t slots, struct lw_engine **ret_engine, struct lw_error *ret_error);

#endif
