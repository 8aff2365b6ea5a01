#!/bin/sh
# Make .venv with everything that Ingot needs: sh deploy/local/setup.sh [extras]
# Honours pip's own settings. Safe to repeat: it ends at once when nothing changed.
set -eu
cd "$(dirname "$0")/../.."

extras="${1:-dev}"
venv="${VENV:-.venv}"
python="${PYTHON:-}"

fail() { printf 'setup: %s\n' "$1" >&2; exit 2; }

if [ -z "$python" ]; then
    for candidate in python3.12 python3.11 python3.13 python3; do
        if command -v "$candidate" >/dev/null 2>&1 &&
           "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python="$candidate"
            break
        fi
    done
    [ -n "$python" ] || fail 'Python 3.11 or newer is missing (Debian, Ubuntu: apt-get install python3 python3-venv)'
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$python is older than 3.11"

stamp="$venv/.ingot-$extras"
wanted="$(cat pyproject.toml constraints.txt deploy/local/setup.sh | cksum)"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

if [ ! -x "$venv/bin/python" ]; then
    "$python" -m venv "$venv" 2>/dev/null ||
        fail 'the venv module is missing (Debian, Ubuntu: apt-get install python3-venv)'
fi
pip() { "$venv/bin/python" -m pip "$@" --disable-pip-version-check; }

torch="$(sed -n 's/^torch==//p' constraints.txt)"
if ! "$venv/bin/python" -c "import torch" 2>/dev/null; then
    echo "setup: PyTorch $torch"
    if command -v nvidia-smi >/dev/null 2>&1 || [ "$(uname -s)" = Darwin ]; then
        pip install --quiet "torch==$torch"
    else
        # No GPU here: prefer the build without CUDA's libraries, wherever pip can find one.
        pip install --quiet "torch==$torch+cpu" 2>/dev/null ||
            pip install --quiet "torch==$torch" --index-url https://download.pytorch.org/whl/cpu \
                --timeout 15 --retries 0 2>/dev/null ||
            pip install --quiet "torch==$torch"
    fi
fi
echo "setup: Ingot and its libraries (a few minutes the first time)"
pip install --quiet --editable ".[$extras]" --constraint constraints.txt
printf '%s\n' "$wanted" > "$stamp"
