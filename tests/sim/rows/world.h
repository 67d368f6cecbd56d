/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Shared by the scenarios of world_rows: requests of this process in the world of tests/fuzz/fuzz_world.h, and the messages of a
 * peer (rank 1, three rails with failover). DESIGN.txt section 13.
 */
#ifndef WORLD_H
#define WORLD_H

#include "../../fuzz/fuzz_world.h"

#include "tables/pml_bfo_failover_fsm.h"

#define must(what) world_must((what), __func__, __LINE__, #what)
void world_must(bool what, const char *function, int line, const char *text);

/* ---- one life of the PML ----------------------------------------------------------------------------- */
enum { THREADS = 1, READS = 2 /* otherwise long messages are written */ };
void life_begins(unsigned how);
/* Every rail and every peer is lost; each request of this process must end. */
void life_ends(void);
void fences_end(void);
/* Rank 1 is declared unreachable. */
void declare(void);
/* Calls progress until no message waits that could go out. */
void progress(void);

/* ---- our sends, to rank 1 ---------------------------------------------------------------------------- */
bfo_send_t *send_match(void);   /* short, but with a request, because btl_sendi was busy */
bfo_send_t *send_copied(void);  /* RNDV, then three FRAGs */
bfo_send_t *send_written(void); /* RNDV, then WRITEs */
bfo_send_t *send_read(void);    /* RGET; in a life without PUT */
/* ---- our receives from rank 1, and the messages that match them ---------------------------------------- */
bfo_recv_t *recv_posted(void);
bfo_recv_t *recv_copied(void);                          /* 1200 bytes: ACK posted */
bfo_recv_t *recv_written(void);                         /* 6000 bytes: four PUTs posted */
bfo_recv_t *recv_read(size_t length, world_btl_t *btl); /* READs of at most 4000 bytes posted */
bool is_over(const void *request);
/* Checks that the request has ended without an error, and lets its object be used again. */
void give_back(void *request);

/* ---- completions of posted operations ----------------------------------------------------------------- */
/* The first operation of this kind (a message type, WORLD_PUT, WORLD_GET) comes back. With an error its rail is lost. */
/* OPAL_ERR_FATAL: another rail has named the same request before. */
void comes_back(unsigned type, int status);
/* Stands for the steps of another thread. Called once, after the PML has decided that this event of a send happened, and before the
 * machine takes the event. */
extern void (*world_before_event)(bfo_send_t *req);
extern unsigned world_event;
/* As comes_back() with OPAL_ERR_FATAL, but without another rail that has named the request before. */
void comes_back_suspect(unsigned type);
bool is_posted(unsigned type);
/* The rail of the first operation of this kind. */
world_btl_t *rail_of(unsigned type);

/* ---- messages of rank 1 ------------------------------------------------------------------------------ */
void got_ack(const bfo_send_t *req, uint16_t epoch, size_t from, size_t size);
void got_fin_of_read(const bfo_send_t *req, size_t size);
void got_handshake(uint8_t type, const bfo_send_t *req, unsigned flags); /* an RERR, RACK or NACK that fits the request */
void got_notify(const bfo_recv_t *req, uint16_t epoch, unsigned flags, uint8_t dead_mask);
void got_notify_of(bfo_id_t id);
void got_frag(const bfo_recv_t *req, uint16_t epoch, size_t from, size_t size);
void got_match(int tag);
void got_restart(const bfo_recv_t *req);
void got_restart_read(const bfo_recv_t *req, world_btl_t *btl);
/* A FIN for the last living PUT of the request; `flags`: BFO_FIN_RESENT; `rail`: index of the rail that it names for its data. */
void got_fin_of_write(const bfo_recv_t *req, unsigned flags, uint8_t rail);
/* The last FIN again, marked as sent over another rail than its data; `rail`: as above. */
void got_fin_again(uint8_t rail);

/* ---- pml_dump ---------------------------------------------------------------------------------------- */
/* Does a line of the dump have both texts? */
bool dump_says(const char *first, const char *second);

/* ---- the scenarios ----------------------------------------------------------------------------------- */
void rows_of_senders(void);
void rows_of_receivers(void);
void rows_raised(void);

#endif /* WORLD_H */
