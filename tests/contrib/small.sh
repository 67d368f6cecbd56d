# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A made-up Open MPI with a small ob1, a made-up bfo, and a map of both, for the tests of the two scripts.
# None of it is upstream's. Source it after lib.sh.
unset LD_PRELOAD
need ctags universal-ctags
need git git
BASE=$TEST_TMP/base OURS=$TEST_TMP/ours MAP=$TEST_TMP/map.txt

mkdir -p "$BASE"/ompi/mca/pml/ob1 "$BASE"/ompi/mca/pml/cm "$BASE"/opal/mca/btl/openib "$BASE"/opal/class \
    "$OURS"/pml_bfo/types "$OURS"/btl_openib_failover "$OURS"/include
printf 'major=1\nminor=0\nrelease=1\ngreek=\n' >"$BASE/VERSION"
cat >"$BASE/opal/mca/btl/btl.h" <<'END'
#define BTL_FLAG_SEND 0x1
typedef void (*btl_recv_fn_t)(struct btl_t *btl, int tag, void *cbdata);
struct btl_des_t {
    int length; /* of all */
    void *data;
};
typedef struct btl_des_t btl_des_t;
END
cat >"$BASE/opal/class/list.h" <<'END'
struct list_t { struct list_t *next; };
typedef struct list_t list_t;
static inline int list_is_empty(list_t *l) { return l == l->next; }
static inline int list_never_used_by_us(list_t *l) { return 0; }
enum { LIST_FIRST = 1, LIST_SECOND };
extern int list_count;
END
cat >"$BASE/ompi/mca/pml/ob1/pml_ob1.h" <<'END'
#ifndef PML_OB1_H
#define PML_OB1_H
#define OB1_HDR_MATCH 65
typedef struct { unsigned char type; unsigned short ctx; } ob1_match_hdr_t;
struct ob1_send_request_t { int state; long bytes; };
struct ob1_table_t { int (*start)(int how, void *what); int largest; };
enum { OB1_NONE = 1, OB1_SOME };
#define OB1_SUM(left, right) ((left) + (right))
#endif
END
cat >"$BASE/ompi/mca/pml/ob1/pml_ob1_match.c" <<'END'
/* finds the receive */
static int ob1_match(struct ob1_send_request_t *req, int tag)
{
    int found = 0;

    if (req->state == tag && req->tag) {
        found = 1;
    } else {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    return found + list_is_empty("a" "b");
}
static void ob1_twice(void) { ob1_match(0, 1); }
static int ob1_leave(int n)
{
    if (n) {
        goto leave;
    }
    n = 1;
leave:
    return n;
}
END
cat >"$BASE/ompi/mca/pml/ob1/pml_ob1_component.c" <<'END'
static int ob1_register(void)
{
    ob1_param_register_int("eager", 4, &ob1.eager);
    ob1.depth = 3;
    mca_base_component_var_register(&ob1.version, "depth", "text", TYPE, 0, 0, 0, LEVEL, SCOPE, &ob1.depth);
    return 0;
}
struct ob1_table_t ob1_table = { ob1_register, 65535 };
OBJ_CLASS_INSTANCE(ob1_frag_t, item_t, ob1_frag_make, NULL);
END
cat >"$OURS/pml_bfo/types/pml_bfo_match.c" <<'END'
#include "opal/class/list.h"
static int our_match(list_t *l)
{
    return list_is_empty(l) ? OPAL_ERR_OUT_OF_RESOURCE : BTL_FLAG_SEND;
}
static const char *our_parameters[][1] = {{"eager"}, {"depth"}};
static void our_register(void) { mca_base_component_var_register(our_parameters); }
END
cat >"$OURS/pml_bfo/types/pml_bfo_types.h" <<'END'
typedef struct { int state; long bytes; } our_send_t;
static void our_receive(struct btl_des_t *des);
static void our_receive_body(void) { btl_recv_fn_t f = our_receive; }
static int our_device(void) { return LIST_SECOND + list_count; }
END
cat >"$MAP.draft" <<'END'
# a small map
watch every ompi/mca/pml/ob1
watch every opal/mca/btl/btl.h
watch folders opal/mca/btl
watch folders ompi/mca/pml
concept matching | which receive takes which message
concept parameters | parameters
concept interface | what we call
concept device | accelerators
topic accelerator | accelerator | device | our_device | memory of accelerators
function | ob1_match | ob1/pml_ob1_match.c | matching | our_match | - |
error | ob1_match OMPI_ERR_OUT_OF_RESOURCE | ob1/pml_ob1_match.c | matching | our_match | - |
function | ob1_twice | ob1/pml_ob1_match.c | matching | - | - | ours never does it twice
function | ob1_register | ob1/pml_ob1_component.c | parameters | our_parameters | - |
param | pml_ob1_eager | ob1/pml_ob1_component.c | parameters | "eager" | - | ours is twice as long
param | pml_ob1_depth | ob1/pml_ob1_component.c | parameters | "depth" | - |
macro | OB1_HDR_MATCH | ob1/pml_ob1.h | matching | our_match | - |
struct | ob1_match_hdr_t | ob1/pml_ob1.h | matching | our_send_t | - |
struct | ob1_send_request_t | ob1/pml_ob1.h | matching | our_send_t | - |
field | ob1_send_request_t.state | ob1/pml_ob1.h | matching | our_send_t.state | - |
field | ob1_send_request_t.bytes | ob1/pml_ob1.h | matching | our_send_t.bytes | - |
struct | ob1_table_t | ob1/pml_ob1.h | matching | our_send_t | - |
constant | OB1_NONE | ob1/pml_ob1.h | matching | our_send_t | - |
constant | OB1_SOME | ob1/pml_ob1.h | matching | our_send_t | - |
macro | OB1_SUM | ob1/pml_ob1.h | matching | - | - | ours never adds
function | ob1_leave | ob1/pml_ob1_match.c | matching | our_match | - |
variable | ob1_table | ob1/pml_ob1_component.c | matching | our_parameters | - |
variable | ob1_frag_t_class | ob1/pml_ob1_component.c | matching | our_match | - |
macro | BTL_FLAG_SEND | btl/btl.h | interface | = | - |
typedef | btl_recv_fn_t | btl/btl.h | interface | = | - |
struct | btl_des_t | btl/btl.h | interface | = | - |
component | opal/mca/btl/openib | mca/btl | interface | our_match | - |
component | ompi/mca/pml/ob1 | mca/pml | interface | our_match | - |
component | ompi/mca/pml/cm | mca/pml | interface | - | - | another PML
END
cp "$MAP.draft" "$MAP"

revision() { perl "$BFO_SRCDIR/contrib/check-ob1-revision.pl" --map "$MAP" --ours "$OURS" "$@" >"$TEST_TMP/out" 2>"$TEST_TMP/err"; }
diffs() { perl "$BFO_SRCDIR/contrib/check-ob1-pml-diffs.pl" --map "$MAP" --ours "$OURS" "$@" >"$TEST_TMP/out" 2>"$TEST_TMP/err"; }
SAID=$TEST_TMP/out SAID_AS=-F
show_said() { cat "$TEST_TMP/out" "$TEST_TMP/err"; }

# ends STATUS COMMAND...: the command ends with STATUS.
ends() {
    local wanted=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" = "$wanted" ] || { show_said; fail "'$*' ended with $status, not $wanted"; }
}
