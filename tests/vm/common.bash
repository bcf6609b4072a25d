# Sourced by the scripts beside it: where things are.
set -uo pipefail
export LC_ALL=C.UTF-8
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# QEMU, busybox, numactl and the kernels, unpacked. Outside the build folder: a new clone need not
# fetch them again.
cache=${FL_VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/faultless-vm}
tools=$cache/tools
qemu=$tools/usr/bin/qemu-system-x86_64
busybox=$tools/usr/bin/busybox
numactl=$tools/usr/bin/numactl

kernel_image() { # kernel_image NAME
    echo "$cache/kernels/$1/vmlinuz"
}

tool() { # tool COMMAND...: one of the unpacked programs, with the libraries that came along
    LD_LIBRARY_PATH=$tools/usr/lib/x86_64-linux-gnu:$tools/lib/x86_64-linux-gnu \
        QEMU_MODULE_DIR=$tools/usr/lib/x86_64-linux-gnu/qemu "$@"
}
