#!/bin/sh
# Make an environment for each peer that the long tests ask: sh tests/peers/setup.sh FOLDER
# Prints where their Pythons are, as settings for a shell; says what cannot be installed, and why.
# A peer that its variable (INGOT_PEERS, …) already names is left alone. Safe to repeat.
set -eu

folder="${1:?usage: setup.sh FOLDER}"
python="${PYTHON:-python3}"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"

# peer NAME VARIABLE MODULE REQUIREMENT...
peer() {
    name="$1" variable="$2" module="$3"
    shift 3
    given="$(printenv "$variable" || true)"
    own="$folder/$name/bin/python"
    if [ -n "$given" ]; then
        echo "export $variable='$given'"
        return
    fi
    wanted="$(echo "$@" | cksum)"
    if [ "$(cat "$folder/$name/installed" 2>/dev/null || true)" != "$wanted" ]; then
        echo "setup: $* (a few minutes the first time)" >&2
        if ! { "$python" -m venv "$folder/$name" &&
               "$own" -m pip install --quiet --disable-pip-version-check "$@" &&
               "$own" -c "import $module"; } >"$folder/$name.log" 2>&1; then
            echo "setup: no $name here, its tests are skipped: $folder/$name.log" >&2
            return
        fi
        echo "$wanted" > "$folder/$name/installed"
    fi
    echo "export $variable='$own'"
}

# datatrove needs xxhash 3 and orjson, which it does not say without its extras; spaCy's words are
# its words, and those of the libraries after it, at the versions of constraints.txt.
peer datatrove INGOT_PEERS datatrove 'datatrove[processing]==0.10.1' spacy==3.8.18 'xxhash<4' orjson \
    jieba==0.42.1 kiwipiepy==0.21.0 kiwipiepy_model==0.21.0 pythainlp==5.4.0 sudachipy==0.7.0 \
    sudachidict-core==20261015
# dolma's s3fs asks for one botocore, for which pip would search through every boto3.
peer dolma INGOT_PEERS_DOLMA dolma dolma==1.2.1 boto3==1.28.17 aiobotocore==2.5.4
# For tests/benchmarks/dedup.py: two libraries for MinHash that share an environment.
peer rensa INGOT_PEERS_RENSA rensa rensa==0.5.0 datasketch==2.0.0 xxhash==4.1.0
# For tests/benchmarks/redaction.py, redaction_blind.py and labelled.py. No spaCy model: only recognizers with patterns,
# check digits and numbering plans are asked.
peer presidio INGOT_PEERS_PRESIDIO presidio_analyzer presidio-analyzer==2.2.366
# For tests/peers/test_lm_eval.py and tests/benchmarks/evaluation.py: the harness, which has the torch and
# the transformers of the Python that runs Ingot ($PYTHON).
harness() {
    own="$folder/lm_eval/bin/python" wanted='lm_eval[math,ifeval]==0.4.13'
    if [ -n "${INGOT_PEERS_LM_EVAL:-}" ]; then
        echo "export INGOT_PEERS_LM_EVAL='$INGOT_PEERS_LM_EVAL'"
        return
    fi
    if [ "$(cat "$folder/lm_eval/installed" 2>/dev/null || true)" != "$wanted" ]; then
        echo "setup: $wanted, with the torch of $python" >&2
        if ! { where="$("$python" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])')" &&
               "$python" -m venv "$folder/lm_eval" &&
               "$own" -c "import pathlib, sysconfig
place = pathlib.Path(sysconfig.get_paths()['purelib'])
(place / 'borrowed.pth').write_text('$where\n')" &&
               "$own" -m pip install --quiet --disable-pip-version-check "$wanted" &&
               "$own" -c "import lm_eval"; } >"$folder/lm_eval.log" 2>&1; then
            echo "setup: no lm_eval here, its tests are skipped: $folder/lm_eval.log" >&2
            return
        fi
        echo "$wanted" > "$folder/lm_eval/installed"
    fi
    echo "export INGOT_PEERS_LM_EVAL='$own'"
}
harness
# For tests/peers/test_interchange.py: what reads our lineage events and descriptions of data sets.
peer openlineage INGOT_PEERS_OPENLINEAGE openlineage.client openlineage-python==1.54.0
peer mlcroissant INGOT_PEERS_MLCROISSANT mlcroissant 'mlcroissant[parquet]==1.1.1'

# --- Readers of exported tokens, for tests/stages/export_tokens -----------------------------------
# It needs torch, whose environment this one borrows from the Python that runs Ingot ($PYTHON), so
# that nothing large is installed twice.
megatron() {
    own="$folder/megatron/bin/python" wanted=megatron-core==0.16.1
    if [ -n "${INGOT_PEERS_MEGATRON:-}" ]; then
        echo "export INGOT_PEERS_MEGATRON='$INGOT_PEERS_MEGATRON'"
        return
    fi
    if [ "$(cat "$folder/megatron/installed" 2>/dev/null || true)" != "$wanted" ]; then
        echo "setup: $wanted, with the torch of $python" >&2
        if ! { where="$("$python" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])')" &&
               "$python" -m venv "$folder/megatron" &&
               "$own" -m pip install --quiet --disable-pip-version-check --no-deps "$wanted" &&
               "$own" -c "import pathlib, sysconfig
place = pathlib.Path(sysconfig.get_paths()['purelib'])
(place / 'borrowed.pth').write_text('$where\n')" &&
               "$own" -c "import megatron.core.datasets.indexed_dataset"; } >"$folder/megatron.log" 2>&1; then
            echo "setup: no megatron here, its test is skipped: $folder/megatron.log" >&2
            return
        fi
        echo "$wanted" > "$folder/megatron/installed"
    fi
    echo "export INGOT_PEERS_MEGATRON='$own'"
}
megatron
# --- end of readers of exported tokens ------------------------------------------------------------
# For tests/benchmarks/loader.py, which stands in for torchvision where that fits no torch without
# CUDA: so it is torch that is asked for here.
peer streaming INGOT_PEERS_STREAMING torch mosaicml-streaming==0.13.0
# For tests/stages/export_gguf/test_llama_cpp.py and tests/benchmarks/gguf.py: llama.cpp, built here from
# source in about 10 minutes with one job.
CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-1}" CMAKE_ARGS="${CMAKE_ARGS:--DLLAVA_BUILD=OFF}" \
    peer llama_cpp INGOT_PEERS_LLAMA_CPP llama_cpp llama-cpp-python==0.3.36
# For tests/stages/export/test_certificate.py: transformers 4, with the torch of the Python that runs
# Ingot ($PYTHON); what it needs in other versions than transformers 5 is its own.
transformers_4() {
    own="$folder/transformers_4/bin/python" wanted='transformers==4.57.6 tokenizers==0.22.1 huggingface_hub==0.36.0'
    if [ -n "${INGOT_PEERS_TRANSFORMERS_4:-}" ]; then
        echo "export INGOT_PEERS_TRANSFORMERS_4='$INGOT_PEERS_TRANSFORMERS_4'"
        return
    fi
    if [ "$(cat "$folder/transformers_4/installed" 2>/dev/null || true)" != "$wanted" ]; then
        echo "setup: $wanted, with the torch of $python" >&2
        if ! { where="$("$python" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])')" &&
               "$python" -m venv "$folder/transformers_4" &&
               "$own" -c "import pathlib, sysconfig
place = pathlib.Path(sysconfig.get_paths()['purelib'])
(place / 'borrowed.pth').write_text('$where\n')" &&
               "$own" -m pip install --quiet --disable-pip-version-check --ignore-installed --no-deps $wanted &&
               "$own" -c "import transformers, torch"; } >"$folder/transformers_4.log" 2>&1; then
            echo "setup: no transformers 4 here, its test is skipped: $folder/transformers_4.log" >&2
            return
        fi
        echo "$wanted" > "$folder/transformers_4/installed"
    fi
    echo "export INGOT_PEERS_TRANSFORMERS_4='$own'"
}
transformers_4
