# Variables and functions of the scripts, which source this file.
# shellcheck shell=bash
# shellcheck disable=SC2034  # the scripts that source this use it
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
unset PYTHONDONTWRITEBYTECODE  # Compiled files speed up the thousands of processes that tests start.
# Every clone can use the same ccache entries, because paths inside the clone are relative.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

say() { printf '== %s\n' "$*" >&2; }

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# as_root COMMAND...: runs the command as root, with sudo if necessary.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "permission denied: root must run '$*'. Run this script as root, or install sudo"
    fi
}

site_packages() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# borrowing_environment FOLDER: creates a virtual environment in FOLDER, if missing, which also uses the packages of .venv.
borrowing_environment() {
    [ -x "$1/bin/python" ] || .venv/bin/python -m venv --without-pip "$1"
    site_packages .venv/bin/python >"$(site_packages "$1/bin/python")/borrowed.pth"
}
