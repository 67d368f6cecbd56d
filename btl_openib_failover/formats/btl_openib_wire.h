/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages between two BTLs, and the record that each process publishes in the modex. Untrusted bytes become
 * structs in host order, or are refused with a reason. No Open MPI header. See DESIGN.txt 6 and 15.
 */
#ifndef BTL_OPENIB_WIRE_H
#define BTL_OPENIB_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define OFO_CTL_VERSION 2    /* version byte of every control message */
#define OFO_RECORD_VERSION 9 /* version byte of the modex record; raised when its layout or meaning changes */
#define OFO_MAX_RAILS 8      /* rails to one peer */
#define OFO_MAX_QPS 8        /* queue pairs of one rail */
#define OFO_MAX_PORTS 16     /* ports that one process publishes */
#define OFO_RAIL_NONE 255    /* rail field of a message that concerns the peer, not a rail; name of a rail that has no name yet */

typedef enum {
    OFO_CTL_DOWN = 0x30,
    OFO_CTL_DACK = 0x31,
    OFO_CTL_REQ = 0x32,
    OFO_CTL_REP = 0x33,
    OFO_CTL_RTU = 0x34,
    OFO_CTL_REJ = 0x35,
    OFO_CTL_PEERDEAD = 0x36,
    OFO_CTL_ASK = 0x37,   /* asks for a REQ of whichever rail belongs to this port: see btl_openib_partner.c */
    OFO_CTL_PROBE = 0x38, /* asks whether datagrams pass over this rail */
    OFO_CTL_ANSWER = 0x39 /* says that they do, over the same rail */
} ofo_ctl_type_t;

typedef enum {
    OFO_REJ_PORT_DOWN = 1,
    OFO_REJ_RAIL_HASH = 2,
    OFO_REJ_BUSY = 3, /* no refusal: the request has arrived and waits for its turn */
    OFO_REJ_DISABLED = 4
} ofo_rej_reason_t;

/* Why the sender of a DOWN or DACK has ended the generation. */
typedef enum {
    OFO_CAUSE_UNKNOWN = 0, /* also an older build, or a cause that this build does not know */
    OFO_CAUSE_PORT = 1,
    OFO_CAUSE_DEVICE = 2,
    OFO_CAUSE_ERROR = 3, /* a post was refused, or a completion was bad */
    OFO_CAUSE_SILENT = 4,
    OFO_CAUSE_CONNECT = 5,
    OFO_CAUSES
} ofo_cause_t;

#define OFO_DACK_VALID 0x01    /* flag of DACK: the counts are known */
#define OFO_CTL_ASKS 0x02      /* flag of DOWN: asks whether the rail carries packets again; flag of DACK: answers such a DOWN */
#define OFO_CTL_SOFT 0x04      /* flag of PROBE: the rail `about` is soft at the sender, by the sender's own inquiry */
#define OFO_CTL_ADDRESS 0x08   /* flag of DOWN: it has the address of the sender's port */
#define OFO_CTL_PROBATION 0x10 /* flag of PROBE and of its ANSWER: a question of the rail's probation, not of an inquiry */

/* A queue pair, as its owner announces it. */
typedef struct {
    uint32_t qpn; /* 24 bits */
    uint32_t psn; /* 24 bits */
} ofo_qp_addr_t;

/* The contents of a DACK: completions of one generation of a rail at the sender of the DACK. */
typedef struct {
    uint64_t n_ok;                /* SENDs and eager WRITEs completed with success */
    uint16_t n_send[OFO_MAX_QPS]; /* SENDs of each queue pair, modulo 2^16 */
    uint16_t n_eager;             /* eager WRITEs, modulo 2^16 */
} ofo_counts_t;

/* A control message in host byte order. The type decides which of the parts after `dst_inc` are used. */
typedef struct {
    uint8_t type; /* ofo_ctl_type_t */
    uint8_t flags;
    uint8_t rail;
    uint8_t cause; /* DOWN, DACK: ofo_cause_t */
    uint16_t gen;
    uint32_t jobid, vpid; /* of the sender */
    uint32_t src_inc, dst_inc;
    /* REQ, REP, ASK */
    uint8_t from, to; /* the sender's and the receiver's port, each an index into its owner's record */
    /* REQ, REP, DOWN with OFO_CTL_ADDRESS */
    uint16_t lid;
    uint8_t gid[16];
    /* REQ, REP */
    uint8_t mtu; /* enum ibv_mtu: largest path MTU the sender takes */
    uint8_t nqp;
    uint8_t qp_index;
    uint8_t reads; /* READs that the sender answers at a time on one queue pair; 0: unknown */
    uint64_t rail_hash;
    ofo_qp_addr_t qp[OFO_MAX_QPS];
    /* DACK */
    ofo_counts_t counts;
    /* REJ */
    uint8_t reason;
    /* PROBE, ANSWER */
    uint8_t about;   /* the rail that seems silent */
    uint16_t number; /* the round of its inquiry */
} ofo_ctl_t;

#define OFO_CTL_MAX_SIZE (56 + 8 * OFO_MAX_QPS)

/* Why bytes were refused; 0 is success. */
typedef enum {
    OFO_WIRE_OK = 0,
    OFO_WIRE_SHORT,   /* fewer bytes than the type needs */
    OFO_WIRE_VERSION, /* another protocol version */
    OFO_WIRE_TYPE,    /* unknown type */
    OFO_WIRE_FIELD    /* a field outside its range */
} ofo_wire_result_t;

/* Writes the message; returns its length, or 0 if `size` is too small or a field is out of range. */
size_t ofo_ctl_pack(const ofo_ctl_t *ctl, uint8_t *buffer, size_t size);

/* Reads a message of `length` bytes; *ctl is valid only on OFO_WIRE_OK. Bytes after the message are ignored. */
ofo_wire_result_t ofo_ctl_unpack(const uint8_t *buffer, size_t length, ofo_ctl_t *ctl);

/* What the user reads if the peer gives this cause; NULL: the cause is unknown. */
const char *ofo_cause_reported(uint8_t cause);

/* "DOWN", "REQ", ... or "unknown". */
const char *ofo_ctl_name(uint8_t type);

/* ---- modex record ------------------------------------------------------------------------------- */

typedef enum {
    OFO_NET_IB = 1,   /* key: 8 bytes of subnet prefix */
    OFO_NET_IPV4 = 4, /* key: network address of an IPv4-mapped GID */
    OFO_NET_IPV6 = 6,
    OFO_NET_IWARP = 16 /* added to the two above */
} ofo_net_type_t;

typedef enum { OFO_CPC_UD = 0, OFO_CPC_RDMACM = 1 } ofo_cpc_type_t;

/* Ports with equal subnets can talk to each other. */
typedef struct {
    uint8_t type;       /* ofo_net_type_t */
    uint8_t prefix_len; /* of the IP network; 64 for InfiniBand */
    uint8_t key[16];    /* the network part, then zeros; a fabric's name is mixed in if the user gave one */
} ofo_subnet_t;

#define OFO_PORT_NAME_LEN 24

typedef struct {
    char name[OFO_PORT_NAME_LEN]; /* "device:port", for messages and rail maps */
    ofo_subnet_t subnet;
    uint8_t guid[16]; /* sorts ports of equal names: port GUID (IB) or GID (RoCE) */
    uint8_t gid[16];  /* of a port without GIDs (iWARP): its IP address, written as a GID of RoCE */
    uint16_t lid;
    uint8_t mtu;         /* active MTU, enum ibv_mtu */
    uint8_t lanes;       /* rails this port offers to one peer */
    uint8_t cpc;         /* ofo_cpc_type_t: how connections are made */
    uint8_t wants_grh;   /* packets to it need a global route header */
    uint8_t is_late;     /* it was down when its process started */
    uint32_t contact[4]; /* for each lane: number of the UD queue pair, or IP port that rdmacm listens on */
    uint32_t qkey;
    uint32_t rate;     /* Mbit/s */
    uint64_t proof_at; /* address of the page that peers write to and nobody reads: OFO_PROOF_SIZE bytes */
    uint32_t proof_key;
    uint16_t sm_lid; /* of the subnet manager; 0 on Ethernet */
} ofo_port_t;

#define OFO_MAX_LANES 4
#define OFO_PROOF_SIZE 4096 /* the largest path MTU */

/* Receive queues of one queue pair index; both sides must have the same. */
typedef struct {
    char type;      /* 'P' per peer, 'S' shared, 's' asked to be shared, but the device has no shared queues */
    uint16_t sends; /* S: messages in flight to one peer */
    uint32_t size;
    uint32_t count;
} ofo_queue_shape_t;

typedef struct {
    uint8_t version;      /* OFO_RECORD_VERSION */
    uint32_t incarnation; /* random, never 0 */
    uint8_t nqp;
    ofo_queue_shape_t queue[OFO_MAX_QPS];
    uint8_t nports;
    ofo_port_t port[OFO_MAX_PORTS];
} ofo_record_t;

#define OFO_RECORD_MAX_SIZE (16 + 12 * OFO_MAX_QPS + 128 * OFO_MAX_PORTS)

/* Writes "device:port", at most OFO_PORT_NAME_LEN bytes; the name of a device is cut if it is too long. */
void ofo_port_name(const char *device, unsigned number, char *name);

/* Writes "device:port (GUID 0x..)" for an InfiniBand port and "device:port (GID ..)" for others, as messages show it. */
void ofo_port_text(const ofo_port_t *port, char *text, size_t size);

/* Writes the record; returns its length, or 0 if `size` is too small or a field is out of range. */
size_t ofo_record_pack(const ofo_record_t *record, uint8_t *buffer, size_t size);

/* On OFO_WIRE_VERSION only record->version is valid. */
ofo_wire_result_t ofo_record_unpack(const uint8_t *buffer, size_t length, ofo_record_t *record);

#endif /* BTL_OPENIB_WIRE_H */
