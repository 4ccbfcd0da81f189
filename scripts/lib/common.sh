# Sourced by the scripts of this folder: the repository's root, messages, and the failure of a script.
# shellcheck shell=bash
# shellcheck disable=SC2034  # the scripts that source this use it
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
unset PYTHONDONTWRITEBYTECODE  # compiled once for thousands of starts
# What ccache keeps is of use in every clone: paths within one count as relative.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

say() { printf '== %s\n' "$*" >&2; }

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# as_root COMMAND...: sudo when this is not root, and a clear word where there is none.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "this needs root: run it as root or install sudo, then run $* "
    fi
}

site_packages() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# borrowing_environment FOLDER: makes a virtual environment there, if it is missing, that borrows the packages of .venv.
borrowing_environment() {
    [ -x "$1/bin/python" ] || .venv/bin/python -m venv --without-pip "$1"
    site_packages .venv/bin/python >"$(site_packages "$1/bin/python")/borrowed.pth"
}
