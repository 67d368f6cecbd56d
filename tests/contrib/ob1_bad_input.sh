#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Bad input to the two scripts about ob1: one message names the input, the status is 2, and nothing is written.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/contrib/small.sh"
ends 0 revision --tree "$BASE" --accept
cp "$MAP" "$MAP.good"
sum() { find "$TEST_TMP" -type f ! -path "$TEST_TMP/out" ! -path "$TEST_TMP/err" -print0 | sort -z | xargs -0 sha1sum; }

# refused NAME WORD COMMAND...: status 2, one line that contains WORD, nothing on stdout, nothing written.
refused() {
    local name=$1 word=$2 before
    shift 2
    before=$(sum)
    ends 2 "$@"
    [ "$(wc -l <"$TEST_TMP/err")" = 1 ] || { show_said; fail "$name: not one message"; }
    grep -qF -- "$word" "$TEST_TMP/err" || { show_said; fail "$name: the message does not name $word"; }
    [ ! -s "$TEST_TMP/out" ] || { show_said; fail "$name: something was printed"; }
    [ "$(sum)" = "$before" ] || fail "$name: something was written"
    note "$name: refused"
}
# Every bad tree goes to both scripts, with the options that write.
each() {
    refused "$@"
    local name=$1 word=$2
    shift 3
    refused "$name, --accept" "$word" revision "$@" --accept
    refused "$name, diffs" "$word" diffs "$@"
    refused "$name, --html" "$word" diffs "$@" --html "$TEST_TMP/page.html"
}
mkdir "$TEST_TMP/empty"
each "no directory" "$TEST_TMP/nowhere" revision --tree "$TEST_TMP/nowhere"
each "a directory without ob1" "$TEST_TMP/empty" revision --tree "$TEST_TMP/empty"
each "no git repository" "not a git repository" revision --git "$TEST_TMP/empty"
git -C "$TEST_TMP/empty" init -q
each "a repository without the tag" v9.9.9 revision --git "$TEST_TMP/empty" --to v9.9.9
(cd "$TEST_TMP/empty" && echo x >x && git add x &&
    git -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false commit -q -m x && git tag v1) || fail "the repository"
each "a repository without ob1" v1 revision --git "$TEST_TMP/empty" --to v1
cp -r "$BASE" "$TEST_TMP/repository"
(cd "$TEST_TMP/repository" && git init -q && git add . &&
    git -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false commit -q -m x && git tag v1.0.1) || fail "the repository"
GIT_DIR=$TEST_TMP/repository/.git refused "another repository in the environment" "it has no tag 'v1.0.1'" revision --git "$TEST_TMP/empty" --to v1.0.1
export HOME=$TEST_TMP GIT_CONFIG_NOSYSTEM=1
unset XDG_CONFIG_HOME SUDO_UID
cp -r "$TEST_TMP/repository" "$TEST_TMP/theirs"
if [ "$(id -u)" = 0 ] && chown -R 12345 "$TEST_TMP/theirs" 2>/dev/null && ! git -C "$TEST_TMP/theirs" rev-parse 2>/dev/null; then
    refused "a repository of another user" "ownership" revision --git "$TEST_TMP/theirs" --to v1.0.1
fi
refused "a missing --from" v8 revision --git "$TEST_TMP/repository" --to v1.0.1 --from v8
refused "a tag that looks like an option" --output=x revision --git "$TEST_TMP/repository" --to=--output=x

# A file that exists but cannot be read does not count as gone.
for path in ompi/mca/pml/ob1/pml_ob1_match.c opal/mca/btl/btl.h opal/class/list.h opal/class opal/mca/btl; do
    rm -rf "$TEST_TMP/broken"
    cp -r "$BASE" "$TEST_TMP/broken"
    rm -r "${TEST_TMP:?}/broken/$path"
    ln -s nowhere "$TEST_TMP/broken/$path"
    each "$path, a symlink to nothing" "cannot read $TEST_TMP/broken/$path" revision --tree "$TEST_TMP/broken"
done

# line NAME WORD LINE: a map with LINE added is refused.
line() {
    cp "$MAP.good" "$MAP"
    printf '%s\n' "$3" >>"$MAP"
    each "$1" "$2" revision --tree "$BASE"
    cp "$MAP.good" "$MAP"
}
line "a line that names nothing" "it names nothing" 'function | ob1_nowhere | ob1/pml_ob1_match.c | matching | our_match | - |'
line "a line of one word" "nonsense" 'nonsense'
line "a line without a name" "it names nothing" 'function |  | ob1/x.c | matching | our_match | - |'
line "neither piece nor reason" "no reason" 'function | ob1_x | ob1/x.c | matching | - | 1.0.1 0123456789 |'
line "an unknown kind" "'thing'" 'thing | ob1_x | ob1/x.c | matching | our_match | - |'
line "an unknown concept" "'dancing'" 'function | ob1_x | ob1/x.c | dancing | our_match | - |'
line "a thing twice" "has a line already" 'function | ob1_match | ob1/pml_ob1_match.c | matching | our_match | - |'
line "a bad list of pieces" "our match" 'function | ob1_x | ob1/x.c | matching | our match | - |'
line "a concept twice" "has a line already" 'concept matching | again'
line "no UTF-8" "it is no UTF-8" $'# caf\351'
line "a place that is nowhere" "has no ompi/mca/nowhere" 'watch every ompi/mca/nowhere'
line "a folder that is nowhere" "has no opal/mca/nowhere" 'watch folders opal/mca/nowhere'
line "a bad pattern" "pattern" 'topic x | ( | matching | our_match | y'
grep -qE ":$(($(wc -l <"$MAP") + 1)): " "$TEST_TMP/err" || { show_said; fail "the message does not say which line"; }

refused "no map" "$TEST_TMP/none" revision --map "$TEST_TMP/none" --tree "$BASE"
refused "no sources of ours" "$TEST_TMP/none" revision --ours "$TEST_TMP/none" --tree "$BASE"
refused "an unknown option" frob revision --frob
refused "a word too many" zwei revision --tree "$BASE" zwei
refused "both trees" --git revision --tree "$BASE" --git "$BASE"
refused "--from without --git" --from revision --tree "$BASE" --from v1
refused "--accept without a tree" --accept revision --accept
refused "--accept with --json" --json revision --tree "$BASE" --accept --json
refused "--accept with --from" --from revision --git "$TEST_TMP/repository" --accept --from v1.0.1
refused "an empty --tree" --tree revision --tree ""
refused "an empty --git" --git revision --git ""
refused "an empty --from" --from revision --git "$TEST_TMP/repository" --from ""
refused "an empty --to" --to revision --git "$TEST_TMP/repository" --to ""
refused "an empty --tree, diffs" --tree diffs --tree ""
refused "an empty --git, diffs" --git diffs --git ""
refused "an empty --html" --html diffs --html ""
refused "an unknown concept" "concepts: matching" diffs --tree "$BASE" dancing
refused "a page nowhere" "$TEST_TMP/no/page.html" diffs --tree "$BASE" --html "$TEST_TMP/no/page.html"


# If the path is not a regular file, it stays as it is.
mkfifo "$TEST_TMP/pipe"
refused "a page into a pipe" "no regular file" diffs --tree "$BASE" --html "$TEST_TMP/pipe"
[ -p "$TEST_TMP/pipe" ] || fail "--html replaced a pipe"
refused "a page at a folder" "no regular file" diffs --tree "$BASE" --html "$TEST_TMP/empty"
: >"$TEST_TMP/target"
ln -s target "$TEST_TMP/page"
ends 0 diffs --tree "$BASE" --html "$TEST_TMP/page"
[ -L "$TEST_TMP/page" ] && [ -s "$TEST_TMP/target" ] || fail "--html replaced a symlink"
ln -s loop "$TEST_TMP/loop"
refused "a page at a symlink to itself" "$TEST_TMP/loop" diffs --tree "$BASE" --html "$TEST_TMP/loop"

# A map that could not be read again is not written.
sed 's/| interface |/| matching |/; /^concept interface/d' "$MAP.draft" >"$MAP"
refused "a map without the concept of new lines" "there is no concept 'interface'" revision --tree "$BASE" --accept
cp "$MAP.good" "$MAP"

# Without the tools, and with another ctags.
mkdir "$TEST_TMP/bin"
perl=$(command -v perl)
without() { PATH=$TEST_TMP/bin "$perl" "$BFO_SRCDIR/contrib/check-ob1-revision.pl" --map "$MAP" --ours "$OURS" "$@" >"$TEST_TMP/out" 2>"$TEST_TMP/err"; }
refused "no ctags" universal-ctags without --tree "$BASE"
printf '#!/bin/sh\necho "unknown option" >&2; exit 1\n' >"$TEST_TMP/bin/ctags"
chmod +x "$TEST_TMP/bin/ctags"
refused "another ctags" universal-ctags without --tree "$BASE"
rm "$TEST_TMP/bin/ctags"
ln -s "$(command -v ctags)" "$TEST_TMP/bin/ctags"
refused "no git" "git is missing" without --git "$TEST_TMP/repository"

# A map that cannot be written stays as it was.
if [ "$(id -u)" != 0 ]; then
    mkdir "$TEST_TMP/locked"
    cp "$MAP.good" "$TEST_TMP/locked/map.txt"
    chmod a-w "$TEST_TMP/locked"
    refused "a folder that cannot be written" "$TEST_TMP/locked/map.txt" revision --map "$TEST_TMP/locked/map.txt" --tree "$BASE" --accept
    chmod u+w "$TEST_TMP/locked"
fi

# A signal leaves no temporary files. This ctags waits, so that the signal comes in the middle of the script's work.
mkdir "$TEST_TMP/slow" "$TEST_TMP/temporary"
mkfifo "$TEST_TMP/started" "$TEST_TMP/go"
printf '#!/bin/sh\necho >"%s"\nread line <"%s"\nexit 1\n' "$TEST_TMP/started" "$TEST_TMP/go" >"$TEST_TMP/slow/ctags"
chmod +x "$TEST_TMP/slow/ctags"
# The first ctags reads our sources, the second the tree.
sed -i "2i [ -e '$TEST_TMP/again' ] || { : >'$TEST_TMP/again'; exec '$(command -v ctags)' \"\$@\"; }" "$TEST_TMP/slow/ctags"
TMPDIR=$TEST_TMP/temporary PATH=$TEST_TMP/slow:$PATH perl "$BFO_SRCDIR/contrib/check-ob1-revision.pl" --map "$MAP" --ours "$OURS" \
    --git "$TEST_TMP/repository" --to v1.0.1 >"$TEST_TMP/out" 2>"$TEST_TMP/err" &
script=$!
read -r -t 200 _ <>"$TEST_TMP/started" || { show_said; fail "the second ctags never began"; }
[ -n "$(ls -A "$TEST_TMP/temporary")" ] || fail "no temporary tree to remove"
kill -TERM $script
echo >"$TEST_TMP/go"
status=0
wait $script || status=$?
[ "$status" = 2 ] || { show_said; fail "SIGTERM: it ended with $status, not 2"; }
grep -q 'ended by SIGTERM' "$TEST_TMP/err" || { show_said; fail "SIGTERM: no message"; }
[ -z "$(ls -A "$TEST_TMP/temporary")" ] || fail "SIGTERM: the temporary tree stayed"
