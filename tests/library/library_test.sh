#!/usr/bin/env bash
# Runs the commands of docs/library.md: installs the library, builds the example against the
# installed copy, stores blocks with one process and restores them with another.
set -euo pipefail
SOURCE="$1"
BUILD="$2"
WORK="$(mktemp -d)"
PREFIX="$WORK/prefix"
trap 'rm -rf "$WORK"' EXIT
export SOURCE BUILD WORK PREFIX
commands="$(awk '/^```bash$/ { inside = 1; next } /^```$/ { inside = 0 } inside' \
  "$SOURCE/docs/library.md")"
[ -n "$commands" ] || { echo "docs/library.md has no commands" >&2; exit 1; }
output="$(bash -euo pipefail -c "$commands")"
echo "$output"
grep -q "matched 0 of 300 tokens" <<<"$output"
grep -q "restored 299 tokens, bit-equal" <<<"$output"
[ ! -e "$PREFIX/include/emberkv/store/cache" ] || { echo "a private header came along"; exit 1; }
