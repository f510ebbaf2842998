/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML to a tree of nodes, by libyaml's events. What a configuration has no use for is refused
 * with a position: anchors, aliases, tags, duplicate keys, keys that are no plain names, several
 * documents, files that are too large or too deep. Scalars stay text: types are the schema's.
 */
#ifndef LW_SERVICE_CONFIG_YAML_H
#define LW_SERVICE_CONFIG_YAML_H

#include "service/config_node.h"

enum { LW_YAML_BYTES_MAX = 1024 * 1024, LW_YAML_DEPTH_MAX = 32, LW_YAML_NODES_MAX = 20000 };

/*
 * Returns the root of the document, always a map, or NULL after reporting why (or without
 * memory: then arena->is_failed). An empty document gives an empty map. The document must live
 * as long as the tree.
 */
struct lw_node *
lw_config_yaml_read(const struct lw_document *document, struct lw_config_arena *arena,
                    struct lw_diagnostics *diagnostics);
/* Reads one value of the command line, such as "[a, b]"; every node gets `place`. */
struct lw_node *
lw_config_yaml_value(const char *text, const struct lw_place *place,
                     struct lw_config_arena *arena, struct lw_diagnostics *diagnostics);

#endif
