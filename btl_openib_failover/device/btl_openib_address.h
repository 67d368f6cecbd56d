/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The address of a port, and the interface that has it. See DESIGN.txt 15.2.
 */
#ifndef BTL_OPENIB_ADDRESS_H
#define BTL_OPENIB_ADDRESS_H

#include "types/btl_openib_types.h"

typedef struct {
    unsigned prefix_len; /* 0: not known */
    bool is_up;
} ofo_interface_t;

/* Looks up the interface that has the GID's IP address. Returns all 0 if there is none. */
ofo_interface_t ofo_interface_look(const uint8_t *gid);
/* Chooses the GID that a port on Ethernet uses; false if the port has none that fits. */
bool ofo_port_choose_gid(struct ibv_context *context, unsigned port, int table_len, struct ibv_gid_entry *best);
/* Looks for the GID again by its value and notes its index in the module; false if it is gone. Context: service. */
bool ofo_port_find_gid(ofo_module_t *module, const uint8_t *gid);
/* Sets the network of a GID's IP address: by the interface that has it, or as btl_openib_gid_prefix_len says. */
void ofo_port_set_subnet(const uint8_t *gid, ofo_subnet_t *subnet);
/* The port's GID is gone: takes another one of the same network, if there is one, for our record and the module. Not with rdmacm, which listens
 * at the old address. Context: service. */
bool ofo_port_take_gid(ofo_module_t *module);
/* True if no interface that is up has the port's IP address any more. The port's state, its GID table and the events show this later. */
bool ofo_port_lost_interface(const ofo_module_t *module);

#endif /* BTL_OPENIB_ADDRESS_H */
