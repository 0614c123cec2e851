#!/bin/sh
# A short lease of a bare GPU machine (Python 3.12, torch with CUDA, numpy, xarray, h5py), from a folder of gpu_pack.sh.
# usage: sh tools/gpu.sh A|B|C [MINUTES]
#   A  is everything right: a training saved and read back, the GPU's tests, every kind of stack, the benchmark
#   B  two records of the CPU verified, then the queue
#   C  the queue, in the order of results/queue.json: what has no record yet, what matters most first
# It stops before its time with checkpoints on disk, and leaves in OUT (default gpu_out) at most 8 files of 15 MB: a log,
# the environment, what was found, and what was trained in pieces back.tgz.aa, ... Pieces laid into a folder `back` beside
# `tools` are gone on with. PYTHON and DEVICE=cpu, for trying it, JOBS kinds and QUEUES trainings side by side come from
# the environment.
set -u
leg=${1:-} minutes=${2:-9}
case $leg in A|B|C) ;; *) echo "usage: sh tools/gpu.sh A|B|C [MINUTES]" >&2; exit 2 ;; esac
case $minutes in ''|*[!0-9]*) echo "gpu.sh: MINUTES is a whole number, not $minutes" >&2; exit 2 ;; esac
cd "$(dirname "$0")/.."

python=${PYTHON:-python3} device=${DEVICE:-cuda} out=${OUT:-gpu_out}
reserve=${RESERVE:-30}                            # seconds for packing
end=$(($(date +%s) + minutes * 60 - reserve))
work=$(pwd)/gpu_work                              # trained here, packed from here
mkdir -p "$out" "$work/results" "$work/site"
log=$out/log.txt
export GROKBOOK_CACHE="$work/cache" PYTHONUNBUFFERED=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONPATH="$work/site:$(pwd)${PYTHONPATH:+:$PYTHONPATH}"

left() { echo $((end - $(date +%s))); }
say() { echo "== $(date +%H:%M:%S) $*" | tee -a "$log"; }
run() { # what runs until it is done or the time is up; TERM has a training write a checkpoint
    [ "$(left)" -gt 5 ] || { say "no time for: $*"; return 1; }
    say "$*"
    timeout -k 20 "$(left)" "$@" >>"$log" 2>&1
    code=$?
    say "ended with $code"
    return $code
}
grokbook() { run "$python" -m grokbook "$@"; }

if ls .whl/*.whl >/dev/null 2>&1; then            # what a bare machine lacks
    "$python" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$work/site" .whl/*.whl >>"$log" 2>&1
fi
if ls back/back.tgz.* >/dev/null 2>&1; then cat back/back.tgz.* | tar xzf - -C "$work" && say "going on from back/"; fi
{
    date -u; uname -srm; nvidia-smi 2>&1 || echo "no nvidia-smi"
    "$python" -c 'import sys, torch, numpy, xarray, h5py
print(sys.version); print(torch.__config__.show())
for one in (torch, numpy, xarray, h5py): print(one.__name__, one.__version__)' 2>&1
} >"$out/environment.txt"

case $leg in
A)
    grokbook train gromov/learning_curves -p p=23 width=32 gd_steps=50 seeds=2 --device "$device" --out "$work/tiny" ||
        say "A SMALL TRAINING FAILED; see the log"
    for test in ${TESTS-tests/test_cuda.py}; do run "$python" -m pytest -q -p no:cacheprovider "$test"; done
    "$python" -m benchmarks.gpu 2>>"$log" | timeout "$(left)" xargs -P "${JOBS:-$((($(nproc) + 1) / 2))}" -I KIND sh -c '
        found=$("$0" -m benchmarks.gpu "$3" --device "$1" 2>>"$2/log.txt" | grep "^{")
        echo "${found:-{\"kind\": \"$3\", \"good\": false\}}" >>"$2/sweep.jsonl"' "$python" "$device" "$out" KIND
    grep '"good": false' "$out/sweep.jsonl" | while read -r kind; do say "NOT GOOD: $kind"; done
    run "$python" -m benchmarks gpu --device "$device" --out "$out" ${BENCHMARK---members 1 128 --seconds 0.5}
    ;;
B)
    for one in ${VERIFY-gromov/adamw_curves gu/base}; do grokbook verify "$one" --sample 1 --device "$device"; done
    ;;
esac
case $leg in B|C)
    # Side by side: one training's launches and evaluations leave a large GPU idle.
    for one in $(seq "${QUEUES:-2}"); do
        grokbook queue --run --device "$device" --out "$work/results" &
    done
    wait
esac

# Checkpoints come back where all is little enough: packing must not outlast the time that is kept for it.
without=
if [ "$(du -sm "$work/results" | cut -f1)" -ge 40 ]; then say "too much to bring back: without checkpoints"; without=--exclude=.parts; fi
rm -f "$out"/back.tgz.*
(cd "$work" && tar cf - $without results 2>/dev/null) | gzip -1 | split -b 15m - "$out/back.tgz."
say "done; $(du -sh "$out" | cut -f1) in $out. At home: cat $out/back.tgz.* | tar xzf - -C CHECKOUT"
