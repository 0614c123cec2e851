#!/bin/sh
# The test suite in two processes: the tests of the built site, and all others, which take what those leave of the cores.
# usage: sh tools/tests.sh VENV
set -u
book=tests/book/test_site.py
told=$(mktemp)
"$1/bin/python" -m pytest "$book" >"$told" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null; rm -f "$told"; exit 130' INT TERM
nice "$1/bin/python" -m pytest --ignore "$book"
code=$?
wait "$beside" || code=$?
echo "$book:"
cat "$told"
rm -f "$told"
exit "$code"
