# Sourced by the scripts beside it: where things are. cmake/arm64.cmake says the same.
set -uo pipefail
export LC_ALL=C.UTF-8
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# arm64's headers and libraries in root/, QEMU in tools/, kernels, all unpacked.
cache=${FL_ARM64_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/faultless-arm64}
root=$cache/root
tools=$cache/tools
user_qemu=$tools/usr/bin/qemu-aarch64-static
system_qemu=$tools/usr/bin/qemu-system-aarch64

kernel_image() { # kernel_image NAME
    echo "$cache/kernels/$1/vmlinuz"
}

# One of the unpacked programs, with the libraries that came along: "${tool[@]}" COMMAND...
tool=(env LD_LIBRARY_PATH="$tools/usr/lib/x86_64-linux-gnu:$tools/lib/x86_64-linux-gnu"
    QEMU_MODULE_DIR="$tools/usr/lib/x86_64-linux-gnu/qemu")
