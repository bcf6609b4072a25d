# Sourced by the tests beside it: a real program under glibc and under faultless, and what both did
# side by side. "default" is faultless as it comes; "low" serves every request of 4 KiB and more and
# gives memory back after 100 ms, which is harder on it. A test prints what it compared and ends
# with 0 (faultless did as well), 1 (it did not) or 77 (the program is not here).
set -uo pipefail
exec </dev/null
export LC_ALL=C.UTF-8
unset LD_PRELOAD GLIBC_TUNABLES MALLOC_CONF
for variable in $(compgen -e | grep -E '^(FAULTLESS|MALLOC|PYTHON)'); do
    unset "$variable"
done

real_name=$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lib=${FL_LIB_PATH:-$root/build/release/libfaultless.so}
python=/usr/bin/python3 # Debian's, whatever comes first on PATH: the packages belong to it
signals=(--default-signal=INT,QUIT,PIPE) # in the background some of them are ignored
failed=0
if [ ! -e "$lib" ]; then
    echo "$real_name: no library at $lib; build it, or name it in FL_LIB_PATH"
    exit 1
fi
work=$(mktemp -d)

at_end=() # commands to run before the folder goes
clean() {
    local command
    for command in "${at_end[@]}"; do
        eval "$command"
    done
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

skip() { # skip REASON...
    echo "SKIP $real_name: $*"
    exit 77
}

need() { # need PROGRAM...: skips where one is not installed
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || skip "needs $program, got none"
    done
}

need_module() { # need_module PYTHON-MODULE...
    local module
    need "$python"
    for module in "$@"; do
        (cd / && "$python" -c "import $module") 2>/dev/null || skip "needs $python's module $module, got none"
    done
}

fail() {
    echo "$real_name: FAILED: $*"
    failed=1
}

# under ALLOCATOR COMMAND...: glibc, default, low, or off: default without plans. The statistics go
# to $work/ALLOCATOR.stats, one line a process.
under() {
    local allocator=$1
    shift
    case $allocator in
    glibc) env "${signals[@]}" "$@" ;;
    default) env "${signals[@]}" LD_PRELOAD="$lib" FAULTLESS_STATS="$work/default.stats" "$@" ;;
    low) env "${signals[@]}" LD_PRELOAD="$lib" FAULTLESS_STATS="$work/low.stats" FAULTLESS_THRESHOLD=4096 \
        FAULTLESS_DECAY_MS=100 "$@" ;;
    off) env "${signals[@]}" LD_PRELOAD="$lib" FAULTLESS_STATS="$work/off.stats" FAULTLESS_STEPS=off "$@" ;;
    *) echo "$real_name: no allocator is called $allocator"; exit 2 ;;
    esac
}

# run ALLOCATOR COMMAND...: stdout, stderr and exit status kept in $work/ALLOCATOR.{out,err,rc};
# says how long it took.
run() {
    local allocator=$1 begin=$EPOCHREALTIME rc=0
    shift
    under "$allocator" "$@" >"$work/$allocator.out" 2>"$work/$allocator.err" || rc=$?
    echo "$rc" >"$work/$allocator.rc"
    echo "$real_name: $allocator: status $rc, $(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s"
}

must_end() { # must_end STATUS ALLOCATOR...: each run ended with that status
    local status=$1 allocator
    shift
    for allocator in "$@"; do
        if [ "$(cat "$work/$allocator.rc")" != "$status" ]; then
            fail "$allocator ended with $(cat "$work/$allocator.rc"), not with $status"
            tail -n 20 "$work/$allocator".{out,err}
        fi
    done
}

same() { # same WHAT FILE FILE
    if cmp -s "$2" "$3"; then
        echo "$real_name: same: $1 ($(stat -c %s "$2") bytes)"
    else
        fail "$1 differs"
        diff --text "$2" "$3" | head -n 20 | cut -c 1-200
    fi
}

active() { # active ALLOCATOR PROGRAM: a process of that name (its first 15 bytes) was served by faultless
    local found
    found=$(awk -v name="\"program\": \"$2\"" 'index($0, name) { n++
        if (match($0, /"requests": [0-9]+/)) { r = substr($0, RSTART + 12, RLENGTH - 12) + 0; sum += r; some += r > 0 }
        if (match($0, /"populate_errors": [0-9]+/)) errors += substr($0, RSTART + 19, RLENGTH - 19)
        } END { printf "%d %d %d %d", n, some, sum, errors }' "$work/$1.stats" 2>/dev/null)
    set -- "$1" "$2" $found
    if [ "${4:-0}" -gt 0 ]; then
        echo "$real_name: active: $1: $3 processes of $2, $4 of them with large requests, $5 requests, $6 refused populations"
    else
        fail "$1: no process named $2 says that it was served (${3:-0} say anything)"
    fi
}

end() {
    [ "$failed" = 1 ] || echo "$real_name: passed"
    exit "$failed"
}
