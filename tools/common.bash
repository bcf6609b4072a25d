# What the tools share that make what is given out (wheel, debs, release); sourced first. Sets root,
# and work, a folder that goes at the end.
export LC_ALL=C.UTF-8
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

quietly() { # quietly WHAT COMMAND...: its output only when it fails
    local what=$1
    shift
    "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; fail "$what failed"; }
}

# The same bytes in each build: the times in it are those of the last commit, the modes are no
# user's.
build_alike() {
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 1577836800)}
    export SOURCE_DATE_EPOCH
    umask 022
}
