#!/usr/bin/env bash
# find_python.sh [--version] VERSION...: prints the first Python of these versions ("3.11 3.10") that
# works here, or its version. That is one that runs (a pyenv shim can be in PATH and still fail) and can
# make environments. Where PYTHON is set, only that one is tried; "python3.10" means any of that version.
# Without any, one line says so.
set -euo pipefail

show=path
if [ "$1" = --version ]; then
    show=version
    shift
fi

name=${PYTHON:-}
if [[ $name == python[0-9].* && " $* " == *" ${name#python} "* ]]; then
    set -- "${name#python}"
    PYTHON=
fi

works() {
    local check='import sys, venv, ensurepip; sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1])'
    "$1" -c "$check" "$2" > /dev/null 2>&1
}

candidates() {
    if [ -n "${PYTHON:-}" ]; then
        echo "$PYTHON"
        return
    fi
    echo "python$1"
    { ls -1d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/"python$1" 2> /dev/null || true; } | sort -rV
    uv python find --no-project "$1" 2> /dev/null || true
    echo python3
    echo /usr/bin/python3
}

for version in "$@"; do
    while read -r candidate; do
        if works "$candidate" "$version"; then
            if [ $show = version ]; then echo "$version"; else command -v "$candidate"; fi
            exit
        fi
    done < <(candidates "$version")
done

versions=$(printf '%s or ' "$@")
versions=${versions% or }
if [ -n "${PYTHON:-}" ]; then
    echo "PYTHON=$PYTHON is not a working Python $versions that can make environments (venv)" >&2
else
    echo "Python $versions with venv is needed, and none was found. Get one with 'apt install python$1-venv'," \
        "'pyenv install $1' or 'uv python install $1'," \
        "or name one: PYTHON=/path/to/python$1" >&2
fi
exit 1
