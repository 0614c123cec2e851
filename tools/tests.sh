#!/bin/sh
# Types, and the test suite in four processes: the tests of the built site, which take longest and go first; those that
# start processes and mostly wait for them; and, with what those leave of the cores, the chapters' tests and all others.
# usage: sh tools/tests.sh VENV
set -u
site=tests/book/test_site.py
waiting="tests/book/test_book.py tests/test_cluster.py tests/test_gpu_tools.py tests/test_runner.py tests/test_queue.py"
chapters="tests/chapters tests/models"
told=$(mktemp -d)
"$1/bin/python" -m pytest $site >"$told/site" 2>&1 &
running=$!
"$1/bin/python" -m pytest $waiting >"$told/waiting" 2>&1 &
running="$running $!"
nice "$1/bin/python" -m pytest $chapters >"$told/chapters" 2>&1 &
running="$running $!"
nice "$1/bin/python" -m mypy >"$told/types" 2>&1 &
running="$running $!"
trap 'kill $running 2>/dev/null; rm -rf "$told"; exit 130' INT TERM
nice "$1/bin/python" -m pytest $(printf -- '--ignore %s ' $site $waiting $chapters)
code=$?
for one in $running; do
  wait "$one" || code=$?
done
cat "$told"/*
rm -rf "$told"
exit "$code"
