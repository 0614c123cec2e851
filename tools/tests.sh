#!/bin/sh
# The test suite in three processes: the tests of the built site, which take longest and go first; those that start
# processes and mostly wait for them; and all others, which take what those leave of the cores.
# usage: sh tools/tests.sh VENV
set -u
site=tests/book/test_site.py
waiting="tests/book/test_book.py tests/test_cluster.py tests/test_gpu_tools.py tests/test_runner.py tests/test_queue.py"
told=$(mktemp -d)
"$1/bin/python" -m pytest $site >"$told/site" 2>&1 &
first=$!
"$1/bin/python" -m pytest $waiting >"$told/waiting" 2>&1 &
second=$!
trap 'kill "$first" "$second" 2>/dev/null; rm -rf "$told"; exit 130' INT TERM
nice "$1/bin/python" -m pytest --ignore $site $(printf -- '--ignore %s ' $waiting)
code=$?
wait "$second" || code=$?
wait "$first" || code=$?
cat "$told/waiting" "$told/site"
rm -rf "$told"
exit "$code"
