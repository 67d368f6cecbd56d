#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# check-ob1-revision.pl on a made-up tree: the script finds each kind of change alone, and names its kind and our piece of code;
# it does not report changes without substance. --accept, --json, --git.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/contrib/small.sh"

# Before the first comparison everything is new; after --accept nothing is.
ends 1 revision --tree "$BASE"
ends 0 revision --tree "$BASE" --accept
ends 0 revision --tree "$BASE"
says 'nothing to look at'
says 'compared with Open MPI 1.0.1'
ends 0 revision
grep -q '^param | pml_ob1_eager .* | 1\.0\.1 =4 | ours is twice as long$' "$MAP" || { cat "$MAP"; fail "the map has no record of a default"; }
grep -q '^# a small map$' "$MAP" || fail "--accept lost a comment"
grep -q '^function | list_is_empty | class/list.h | interface | = | 1\.0\.1 ' "$MAP" || fail "--accept added no line for what we use of a header"
! grep -q list_never_used "$MAP" || fail "the map has what we do not use of a header"

# change NAME COMMAND...: makes a copy of the tree, and changes it by a command that runs in the copy.
change() {
    rm -rf "$TEST_TMP/new"
    cp -r "$BASE" "$TEST_TMP/new"
    (cd "$TEST_TMP/new" && eval "$2") || fail "$1: the change failed"
    if diff -rq "$BASE" "$TEST_TMP/new" >/dev/null; then fail "$1: nothing changed"; fi
}
# found N NAME COMMAND TEXT...: N changes, status 1, and the output contains the texts.
found() {
    local n=$1 name=$2 text
    change "$2" "$3"
    shift 3
    ends 1 revision --tree "$TEST_TMP/new"
    says "changes to look at: $n."
    for text in "$@"; do says "$text"; done
    note "$name: found"
}
# nothing NAME COMMAND: no change in substance.
nothing() {
    change "$1" "$2"
    ends 0 revision --tree "$TEST_TMP/new"
    note "$1: no change"
}
ob1=ompi/mca/pml/ob1 match=ompi/mca/pml/ob1/pml_ob1_match.c

nothing "a comment" "sed -i 's,/\* finds the receive \*/,// looks for the receive,; s,found = 0;,found = 0; /* none */,' $match"
nothing "white space and line breaks" "sed -i 's/    /\t/g; s/(struct ob1_send_request_t \*req, int tag)/(\n  struct ob1_send_request_t * req,\n  int tag )/' $match"
nothing "a local renamed" "sed -i 's/\bfound\b/hit/g; s/\breq\b/request/g' $match"
nothing "a local renamed, and not the member of its name" "sed -i 's/int tag)/int label)/; s/== tag/== label/' $match"
nothing "a string in pieces" "sed -i 's/\"a\" \"b\"/\"ab\"/' $match"
nothing "a macro over two lines" "sed -i 's/#define OB1_HDR_MATCH 65/#define OB1_HDR_MATCH \\\\\n    65/' $ob1/pml_ob1.h"
nothing "the parameters of a callback renamed" "sed -i 's/int tag, void \*cbdata/int label, void *data/' opal/mca/btl/btl.h"
nothing "the parameters of a callback left out" "sed -i 's/int tag, void \*cbdata/int, void */' opal/mca/btl/btl.h"
nothing "the parameters of a function of a structure renamed" "sed -i 's/int how, void \*what/int so, void *data/' $ob1/pml_ob1.h"
nothing "a parameter of a macro renamed" "sed -i '/OB1_SUM/s/left/first/g' $ob1/pml_ob1.h"
nothing "a label renamed" "sed -i 's/\bleave\b/out/' $match"
nothing "what we do not use of a header" "sed -i 's/list_never_used_by_us(list_t \*l) { return 0; }/list_other(void) { return 1; }/' opal/class/list.h"

found 1 "one line of a function" "sed -i 's/req->state == tag/req->state != tag/' $match" \
    'changed function  ob1_match' 'pml_bfo/types/pml_bfo_match.c:2 our_match'
found 1 "another member" "sed -i 's/req->tag/req->found/' $match" 'changed function  ob1_match'
found 1 "a function is new" "echo 'static int ob1_more(void) { return 1; }' >>$match" 'added   function  ob1_more' 'our_match'
found 1 "a function is gone" "sed -i /ob1_twice/d $match" 'gone    function  ob1_twice' 'ours never does it twice'
found 1 "a function moved" "sed -i /ob1_twice/d $match; echo 'static void ob1_twice(void) { ob1_match(0, 1); }' >$ob1/pml_ob1_new.c" \
    'moved   function  ob1_twice' 'was in ob1/pml_ob1_match.c'
found 2 "an error path is new" "sed -i 's/ob1_match(0, 1);/if (ob1_match(0, 1)) return OMPI_ERR_TIMEOUT;/' $match" \
    'added   error     ob1_twice OMPI_ERR_TIMEOUT' 'changed function  ob1_twice'
found 2 "an error path is gone" "sed -i 's/OMPI_ERR_OUT_OF_RESOURCE/1/' $match" \
    'gone    error     ob1_match OMPI_ERR_OUT_OF_RESOURCE' 'changed function  ob1_match' 'our_match'
found 2 "a default" "sed -i 's/\"eager\", 4/\"eager\", 64/' $ob1/pml_ob1_component.c" \
    'changed param     pml_ob1_eager' 'was 4, is 64' 'pml_bfo/types/pml_bfo_match.c:6 "eager"' 'changed function  ob1_register'
found 2 "a default that is assigned" "sed -i 's/ob1.depth = 3/ob1.depth = 5/' $ob1/pml_ob1_component.c" 'changed param     pml_ob1_depth' 'was 3, is 5'
found 2 "a parameter is gone" "sed -i /eager/d $ob1/pml_ob1_component.c" 'gone    param     pml_ob1_eager' '"eager"'
found 2 "a parameter is new" "sed -i 's/    ob1.depth = 3;/    ob1_param_register_int(\"width\", 8, \&ob1.width);\n&/' $ob1/pml_ob1_component.c" \
    'added   param     pml_ob1_width' 'is 8'
found 1 "a constant" "sed -i 's/OB1_HDR_MATCH 65/OB1_HDR_MATCH 66/' $ob1/pml_ob1.h" 'changed macro     OB1_HDR_MATCH' 'was 65, is 66'
found 1 "a constant by the one before it" "sed -i 's/LIST_FIRST = 1/LIST_FIRST = 7/' opal/class/list.h" \
    'changed constant  LIST_SECOND' 'was 1+1, is 7+1' 'pml_bfo/types/pml_bfo_types.h:4'
found 2 "constants that are counted from one" "sed -i 's/OB1_NONE = 1/OB1_NONE = 3/' $ob1/pml_ob1.h" \
    'changed constant  OB1_NONE' 'was 1, is 3' 'changed constant  OB1_SOME' 'was 1+1, is 3+1' 'our_send_t'
found 1 "a value in a table" "sed -i 's/65535/1/' $ob1/pml_ob1_component.c" 'changed variable  ob1_table' 'pml_bfo/types/pml_bfo_match.c:6 our_parameters'
found 1 "a constructor" "sed -i 's/ob1_frag_make/ob1_frag_other/' $ob1/pml_ob1_component.c" 'changed variable  ob1_frag_t_class' \
    'was item_t,ob1_frag_make,NULL, is item_t,ob1_frag_other,NULL'
found 1 "a variable is new" "echo 'static int ob1_count = 3;' >>$match" 'added   variable  ob1_count' 'is int ob1_count=3'
found 1 "a callback of a structure" "sed -i 's/int how, void/long how, void/' $ob1/pml_ob1.h" 'changed struct    ob1_table_t'
found 1 "a header structure" "sed -i 's/unsigned short ctx/unsigned int ctx/' $ob1/pml_ob1.h" 'changed struct    ob1_match_hdr_t' 'our_send_t'
found 2 "a request field of another type" "sed -i 's/long bytes/int bytes/' $ob1/pml_ob1.h" \
    'changed field     ob1_send_request_t.bytes' 'was long, is int' 'pml_bfo/types/pml_bfo_types.h:1 our_send_t.bytes'
found 2 "a request field is new" "sed -i 's/long bytes;/long bytes; int more;/' $ob1/pml_ob1.h" 'added   field     ob1_send_request_t.more'
found 1 "a callback with other arguments" "sed -i 's/int tag, void \*cbdata/struct btl_des_t *des/' opal/mca/btl/btl.h" \
    'our sources name it' 'changed typedef   btl_recv_fn_t' 'pml_bfo/types/pml_bfo_types.h:3'
found 1 "a structure of the interface" "sed -i 's/int length;/long length;/' opal/mca/btl/btl.h" 'changed struct    btl_des_t' 'pml_bfo/types/pml_bfo_types.h'
found 1 "what we use of another header" "sed -i 's/return l == l->next/return !l->next/' opal/class/list.h" 'changed function  list_is_empty' 'pml_bfo/types/pml_bfo_match.c:4'
found 5 "a header is gone" "rm opal/class/list.h" 'gone    header    opal/class/list.h' 'gone    function  list_is_empty' 'pml_bfo/types/pml_bfo_match.c:1'
found 1 "a variable of another header" "sed -i 's/extern int list_count/extern long list_count/' opal/class/list.h" \
    'changed variable  list_count' 'was int, is long' 'pml_bfo/types/pml_bfo_types.h:4'
found 3 "a header that is watched is gone" "rm opal/mca/btl/btl.h" 'gone    macro     BTL_FLAG_SEND' 'gone    struct    btl_des_t'
found 1 "a component is gone" "rmdir opal/mca/btl/openib" 'gone    component opal/mca/btl/openib' 'our_match'
found 1 "a topic" "mkdir opal/mca/btl/accelerator" '* accelerator: memory of accelerators' 'added   component opal/mca/btl/accelerator' 'our_device'
found 2 "the worst comes first" "sed -i 's/return l == l->next/return !l->next/' opal/class/list.h; sed -i /ob1_twice/d $match"
[ "$(grep -n list_is_empty "$TEST_TMP/out" | head -n 1 | cut -d: -f1)" -lt "$(grep -n ob1_twice "$TEST_TMP/out" | head -n 1 | cut -d: -f1)" ] ||
    { show_said; fail "what our sources name does not come first"; }

# JSON, for programs.
change "a default" "sed -i 's/\"eager\", 4/\"eager\", 64/' $ob1/pml_ob1_component.c"
ends 1 revision --tree "$TEST_TMP/new" --json
perl -MJSON::PP -e 'local $/; my $all = decode_json(<STDIN>); my ($c) = grep { $_->{kind} eq "param" } @{$all->{changes}};
    exit !($c->{what} eq "changed" && $c->{was} eq "=4" && $c->{is} eq "=64" && $c->{ours}[0]{file} eq "pml_bfo/types/pml_bfo_match.c"
           && $all->{compared_with} eq "1.0.1")' <"$TEST_TMP/out" || { show_said; fail "--json"; }

ends 0 revision --json
perl -MJSON::PP -e 'local $/; my $all = decode_json(<STDIN>); exit !($all->{compared_with} eq "1.0.1" && !@{$all->{changes}})' <"$TEST_TMP/out" ||
    { show_said; fail "--json without a tree"; }

# A git repository: from the map's records, and from one tag to another.
repository=$TEST_TMP/repository
cp -r "$BASE" "$repository"
touch "$repository/opal/mca/btl/openib/x" "$repository/ompi/mca/pml/cm/x"
git=(git -C "$repository" -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false)
("${git[@]}" init -q && "${git[@]}" add . && "${git[@]}" commit -q -m one && "${git[@]}" tag v1.0.1 &&
    sed -i 's/req->state == tag/req->state != tag/' "$repository/$match" && "${git[@]}" commit -q -a -m two && "${git[@]}" tag v1.0.2 &&
    sed -i 's/BTL_FLAG_SEND 0x1/BTL_FLAG_SEND 0x2/' "$repository/opal/mca/btl/btl.h" && "${git[@]}" commit -q -a -m three) >"$TEST_TMP/git.log" 2>&1 ||
    { cat "$TEST_TMP/git.log"; fail "the repository"; }
ends 0 revision --git "$repository" --to v1.0.1
ends 1 revision --git "$repository" --to v1.0.2
says "changes to look at: 1."
ends 1 revision --git "$repository"
says "changes to look at: 2."
ends 1 revision --git "$repository" --from v1.0.2
says "changes to look at: 1."
says 'was 0x1, is 0x2'
ends 0 revision --git "$repository" --from v1.0.2 --to v1.0.2
GIT_DIR=$TEST_TMP/nowhere ends 0 revision --git "$repository" --to v1.0.1 # the environment does not name the repository

# --accept removes lines of things that are gone and adds new things; then nothing is left to look at, but a person must name our piece for each.
change "much" "sed -i /ob1_twice/d $match; echo 'static int ob1_more(void) { return 1; }' >>$match; sed -i 's/release=1/release=2/' VERSION"
cp "$MAP" "$TEST_TMP/copy"
ln "$MAP" "$TEST_TMP/linked" # --accept writes a new file, and then renames it
ends 0 revision --tree "$TEST_TMP/new" --accept
cmp -s "$TEST_TMP/linked" "$TEST_TMP/copy" || fail "--accept writes into the map itself"
ends 0 revision --tree "$TEST_TMP/new"
says 'compared with Open MPI 1.0.2'
! grep -q 'ob1_twice' "$MAP" || fail "a line of what is gone stayed"
grep -q '^function | ob1_more | ob1/pml_ob1_match.c | interface | ? | 1\.0\.2 ' "$MAP" || fail "no line for what is new"
ends 1 diffs --tree "$TEST_TMP/new"
says '! function  ob1_more'
[ -z "$(find "$TEST_TMP" -maxdepth 1 -name '.new-*')" ] || fail "--accept left a temporary file"

# One name in two headers whose paths end alike: the map can tell them apart.
cp "$MAP" "$MAP.good"
change "two headers" "mkdir -p opal/x/base opal/y/base; echo '#define SAME 1' >opal/x/base/base.h; echo '#define SAME 2' >opal/y/base/base.h"
printf '#include "opal/x/base/base.h"\n#include "opal/y/base/base.h"\nstatic int our_same = SAME;\n' >"$OURS/pml_bfo/types/pml_bfo_same.c"
ends 0 revision --tree "$TEST_TMP/new" --accept
ends 0 revision --tree "$TEST_TMP/new"
ends 0 revision --tree "$TEST_TMP/new" --accept
sed -i s/2/3/ "$TEST_TMP/new/opal/y/base/base.h"
ends 1 revision --tree "$TEST_TMP/new"
says 'changes to look at: 1.'
says 'was 2, is 3'
cp "$MAP.good" "$MAP"
rm "$OURS/pml_bfo/types/pml_bfo_same.c"

# Folders with names that a map cannot hold get no line, therefore the map can be read again.
change "folders of odd names" "mkdir 'opal/mca/btl/a | b' opal/mca/btl/a\|b opal/mca/btl/\$'a\nb'; sed -i 's/65535/1/' $ob1/pml_ob1_component.c"
ends 0 revision --tree "$TEST_TMP/new" --accept
ends 0 revision --tree "$TEST_TMP/new"

# A symlink to the map stays a symlink.
cp "$MAP.good" "$MAP"
ln -s map.txt "$TEST_TMP/link"
perl "$BFO_SRCDIR/contrib/check-ob1-revision.pl" --map "$TEST_TMP/link" --ours "$OURS" --tree "$TEST_TMP/new" --accept >"$TEST_TMP/out" || { show_said; fail "--accept through a symlink"; }
[ -L "$TEST_TMP/link" ] || fail "--accept replaced a symlink"
ends 0 revision --tree "$TEST_TMP/new"
