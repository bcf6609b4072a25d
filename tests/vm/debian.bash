# Sourced by the scripts that fetch Debian's packages, unpacked and not installed: apt with lists of
# its own. `cache` and `log` are set.
site=$(apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" && $2 !~ /security/ && $3 == "main" { print $4; exit }')
site=${site:-http://deb.debian.org/debian} # apt has no lists yet, or sources of another system
keys=/usr/share/keyrings/debian-archive-keyring.gpg
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)

# with_suites SUITE... -- COMMAND...: apt with sources and lists of its own, so that the machine's
# are neither read nor locked. What is installed here is still known to it; where `architecture` is
# set, that machine's packages are, and none is installed.
with_suites() {
    local suites=() folder suite
    while [ "$1" != -- ]; do
        suites+=("$1")
        shift
    done
    shift
    folder=$cache/apt/${architecture:-own}/$(IFS=+; echo "${suites[*]}")
    mkdir -p "$folder/lists/partial"
    for suite in "${suites[@]}"; do
        echo "deb [signed-by=$keys] $site $suite main"
    done >"$folder/sources"
    cat >"$folder/conf" <<TEXT
Dir::Etc::SourceList "$folder/sources";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$folder/lists";
Dir::Cache::PkgCache "";
Dir::Cache::SrcPkgCache "";
APT::Sandbox::User "$(id -un)";
Debug::NoLocking "true";
TEXT
    if [ -n "${architecture:-}" ]; then
        : >"$folder/status"
        cat >>"$folder/conf" <<TEXT
APT::Architecture "$architecture";
APT::Architectures "$architecture";
Dir::State::status "$folder/status";
TEXT
    fi
    APT_CONFIG=$folder/conf "$@" 2>>"$log"
}
