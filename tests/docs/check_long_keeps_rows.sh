#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# tests/check_long.sh in a made-up repository, with a make that runs nothing: the row of a part that ran replaces its row in RESULTS.md, all other
# rows keep their commit, and no row names a commit whose sources did not run.
. "$BFO_SRCDIR/tests/lib.sh"
need git git
need flock util-linux
repository=$TEST_TMP/repository results=$TEST_TMP/repository/tests/RESULTS.md
mkdir -p "$repository/tests" "$TEST_TMP/build/tests" "$TEST_TMP/bin" "$TEST_TMP/tmp"
cp "$BFO_SRCDIR"/tests/{lib.sh,check_long.sh} "$repository/tests"
ln -s "$BFO_BUILDDIR/softrail" "$TEST_TMP/build/softrail"
ln -s "$BFO_BUILDDIR/tests/.libs" "$TEST_TMP/build/tests/.libs"
printf '%s\n' '# table' '| part | verdict | seconds | passed | failed | retried | commit, date |' '' '## Figures' '' '| Of | hand |' >"$results"
cat >"$TEST_TMP/bin/make" <<'MAKE'
#!/bin/bash
# Each target does what the test asks for in BREAKS and CHANGES.
for target in "$@"; do :; done
[ "$target" = "${CHANGES:-}" ] && echo >>"$BFO_SRCDIR/source"
[ "$target" = "${BREAKS:-}" ] && exit 2
printf '%s\n' '# PASS:  3' '# FAIL:  0' 'retried: 1 (for once)'
MAKE
chmod +x "$TEST_TMP/bin/make"
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost

# commit TEXT: commits all files
commit() {
    echo "$1" >>"$repository/source"
    git -C "$repository" add -A && git -C "$repository" commit -q -m "$1" || fail "no commit: $1"
    at=$(git -C "$repository" log -1 --format=%h)
}
# run STATUS PART...: the script ends with STATUS
run() {
    local expected=$1 status
    shift
    BFO_SRCDIR=$repository BFO_BUILDDIR=$TEST_TMP/build TMPDIR=$TEST_TMP/tmp PATH=$TEST_TMP/bin:$PATH bash "$repository/tests/check_long.sh" "$@" >"$TEST_TMP/log" 2>&1
    status=$?
    [ $status = "$expected" ] || { cat "$TEST_TMP/log"; fail "check_long.sh $*: status $status, not $expected"; }
}
# has PART "VERDICT" COMMIT: the only row of PART has this verdict and commit
has() {
    [ "$(grep -c "^| $1 |" "$results")" = 1 ] && grep -qE "^\| $1 \| $2 \| [0-9]+ \| [0-9] \| [0-9] \| [0-9]+ \| $3, [0-9-]{10} \|$" "$results" ||
        { cat "$results" "$TEST_TMP/log"; fail "no row of $1: $2, $3"; }
}
parts() { sed -n 's/^| \([a-z0-9-]*\) |.*/\1/p' "$results" | sed 1d | paste -sd' '; }

git init -q "$repository" || fail "no repository"
commit first
first=$at
PARTS='rows model faults' run 0
has faults passed "$first"
has rows passed "$first"
has model passed "$first"
run 0 soak # now only the table differs from the commit
has soak passed "$first"
[ "$(parts)" = 'faults soak rows model' ] || { cat "$results"; fail "the rows are: $(parts)"; }
grep -q '^| faults | passed | [0-9]* | 3 | 0 | 1 |' "$results" || { cat "$results"; fail "what make counted is not in the row"; }
commit second
BREAKS=check-rows run 1 rows
has rows FAILED "$at"
has faults passed "$first"
cp "$results" "$TEST_TMP/before"
SHORT=1 run 0 faults
CHANGES=check-faults run 0 faults # the sources change while it runs
grep -q "^| faults | passed .* $at, changed, " "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "not said that the sources changed"; }
run 0 faults # and stay changed
run 1 faults nonsense
grep -q "there is no part 'nonsense'" "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "an unknown part is not named"; }
cmp "$TEST_TMP/before" "$results" || { cat "$results"; fail "a row is not of the commit that it names"; }
# docs/verification.md gets the same rows, and does not count as a change either.
mkdir "$repository/docs" "$repository/contrib"
mkdir -p "$repository/contrib/lib/Bfo"
cp "$BFO_SRCDIR/contrib/results-page.pl" "$repository/contrib"
cp "$BFO_SRCDIR/contrib/lib/Bfo/Page.pm" "$repository/contrib/lib/Bfo"
{ echo '<!-- results tests/RESULTS.md -->'
  for part in $(sed -n 's/^all_parts="\(.*\)"/\1/p' "$repository/tests/check_long.sh"); do echo "| \`$part\` | words | |"; done
  echo '<!-- end -->'; } >"$repository/docs/verification.md"
commit third
run 0 soak
run 0 rows
has rows passed "$at"
grep -qE "^\| \`rows\` \| words \| passed \| 3 \| 0 \| [0-9]+ s \| $at, " "$repository/docs/verification.md" ||
    { cat "$TEST_TMP/log" "$repository/docs/verification.md"; fail "docs/verification.md has another row"; }
grep -q '^| `world` | words | - | - | - | - | not run yet |$' "$repository/docs/verification.md" ||
    { cat "$repository/docs/verification.md"; fail "a part that never ran has another row"; }
run 0 world
grep -qE "^\| \`world\` \| words \| passed \| 3 \| 0 \| " "$repository/docs/verification.md" || { cat "$repository/docs/verification.md"; fail "the first run of a part is not in the page"; }
[ "$(sed -n '/^## Figures/,$p' "$results")" = $'## Figures\n\n| Of | hand |' ] || { cat "$results"; fail "what stands after the table did not stay as it was"; }
exit 0
