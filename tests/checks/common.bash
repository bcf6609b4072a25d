# Sourced by the checks beside it. A check prints one line a violation on stdout and ends with 0
# (none), 1 (some) or 2 (it could not look). With --self-test it plants violations in a copy of the
# tree and ends with 0 when each is caught.
set -euo pipefail
export LC_ALL=C

check_name=$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=
self_test=0
while [ $# -gt 0 ]; do
    case $1 in
    --root) root=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    --self-test) self_test=1; shift ;;
    *) echo "usage: $0 [--self-test] [--root DIR] [--build DIR]" >&2; exit 2 ;;
    esac
done
build=${build:-$root/build/release}
violations=0

# The clone may belong to another user than the one who checks it (sudo, a container).
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0="$root"
if [ -e "$root/.git" ] && ! git -C "$root" ls-files >/dev/null; then
    echo "$check_name: git cannot list the files of $root"
    exit 2
fi

violation() { # violation TEXT...
    echo "$check_name: $*"
    violations=$((violations + 1))
}

finish() {
    [ "$violations" = 0 ] || exit 1
    exit 0
}

# tree PATTERN...: files under version control, and new ones git does not ignore, relative to the
# root and sorted. A copy made by copy_tree is no repository; there every file counts.
tree() {
    if [ -e "$root/.git" ]; then
        git -C "$root" ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r f; do
            [ ! -f "$root/$f" ] || printf '%s\n' "$f"
        done | sort -u
    else
        local pattern
        for pattern in "$@"; do
            # A git pathspec's * crosses directories, as find's -path does.
            (cd "$root" && find . -type f -path "./$pattern" ! -path './build/*' -printf '%P\n')
        done | sort -u
    fi
}

copy=
copy_tree() { # a fresh copy of the tree in $copy
    [ -n "$copy" ] && rm -rf "$copy"
    copy=$(mktemp -d)
    tree '*' | tar -C "$root" -cf - -T - | tar -C "$copy" -xf -
}
trap '[ -z "$copy" ] || rm -rf "$copy"' EXIT

# caught WHAT TEXT [WHAT TEXT]...: runs this check on $copy once; it must end with 1 and print each
# TEXT.
missed=0
caught() {
    local out rc=0
    out=$("$0" --root "$copy" --build "${copy_build:-$copy/build/release}" 2>&1) || rc=$?
    while [ $# -gt 0 ]; do
        if [ "$rc" = 1 ] && grep -qF -- "$2" <<<"$out"; then
            echo "$check_name: caught: $1"
        else
            echo "$check_name: MISSED: $1 (status $rc, said: ${out:-nothing})"
            missed=1
        fi
        shift 2
    done
}

end_self_test() {
    exit "$missed"
}
