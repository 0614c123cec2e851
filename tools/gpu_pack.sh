#!/bin/sh
# A slim copy of this checkout for a bare GPU machine: code, what of the queue has no record here, the records that a leg
# verifies, and wheels of what is missing there. Below 20 MB, or it is refused.
# usage: sh tools/gpu_pack.sh FOLDER [--no-wheels]
set -eu
folder=${1:?usage: sh tools/gpu_pack.sh FOLDER [--no-wheels]}
cd "$(dirname "$0")/.."
[ ! -e "$folder" ] || { echo "gpu_pack: $folder is there already" >&2; exit 2; }
mkdir -p "$folder"
folder=$(cd "$folder" && pwd) python=${PYTHON:-.venv/bin/python}
git ls-files grokbook tests benchmarks tools pyproject.toml requirements.txt results/queue.json 'results/*/*.json' \
    results/gromov/adamw_curves.nc results/gu/base.nc | tar cf - -T - | tar xf - -C "$folder"
echo "$(git rev-parse --short HEAD)$(git diff --quiet HEAD -- grokbook || echo +)" >"$folder/COMMIT"
"$python" - "$folder/results/queue.json" <<'END'
import json, sys
from grokbook.train import queue
found = zip(json.loads(queue.PATH.read_text()), queue.entries())
left = [given for given, entry in found if not entry.is_done(queue.PATH.parent)]
open(sys.argv[1], "w").write(json.dumps(left, indent=1))
END
if [ "${2:-}" != --no-wheels ]; then
    grep -oE '^(pytest|pluggy|iniconfig|packaging|pygments)==[^ ;]+' requirements.txt |
        "$python" -m pip download -q --no-deps --only-binary=:all: -d "$folder/.whl" -r /dev/stdin
fi
size=$(du -sk "$folder" | cut -f1)
[ "$size" -lt 20000 ] || { echo "gpu_pack: $folder has $size kB; 20,000 are allowed" >&2; exit 1; }
echo "$folder: $size kB. There: cd $folder && sh tools/gpu.sh A 6"
