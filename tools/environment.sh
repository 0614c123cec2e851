#!/bin/sh
# Makes a virtual environment (default .venv) with the exact pins of requirements.txt and this package, editable.
# Does nothing when it is already up to date. `make` calls it; PYTHON=... names the interpreter to build it from.
set -eu

venv=${1:-.venv}
stamp=$venv/.ready
lock=$venv.lock
wanted=$(cat requirements.txt pyproject.toml | cksum)

fail() { echo "set-up: $*" >&2; exit 1; }
is_supported() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }
is_ready() { [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && is_supported "$venv/bin/python"; }

if is_ready; then touch "$stamp"; exit 0; fi

python=
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if is_supported "$candidate"; then python=$candidate; break; fi
done
[ -n "$python" ] || fail "needs Python 3.11, 3.12 or 3.13, and found $(${PYTHON:-python3} --version 2>&1 | head -n 1)." \
    "Name one: make PYTHON=/path/to/python3.12 ..."

waiting=
until ln -s $$ "$lock" 2>/dev/null; do      # a symbolic link appears at once, with its owner's process id in it
    owner=$(readlink "$lock" 2>/dev/null) || { [ -w . ] || fail "cannot write in $(pwd)"; sleep 1; continue; }
    kill -0 "$owner" 2>/dev/null || { rm -f "$lock"; continue; }
    [ -n "$waiting" ] || echo "set-up: process $owner is already at it; waiting for it" >&2
    waiting=yes
    sleep 1
done
trap 'rm -f "$lock"' EXIT
trap 'exit 130' INT TERM HUP
if is_ready; then exit 0; fi                # done by the one we waited for

echo "set-up: $("$python" --version) -> $venv, exact versions from requirements.txt (once; some minutes of downloads)" >&2
is_supported "$venv/bin/python" || "$python" -m venv --clear "$venv" \
    || fail "$python cannot make a virtual environment (Debian and Ubuntu: install python3-venv)"
pip="$venv/bin/python -m pip --quiet --quiet --disable-pip-version-check"   # errors only
$pip install -r requirements.txt || fail "pip could not install requirements.txt; the lines above say why. Run the same command to go on."
$pip install --no-deps --no-build-isolation -e . || fail "pip could not install this package itself"
echo "$wanted" > "$stamp"
