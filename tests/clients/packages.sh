#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What an installation of the clients holds: all of their modules and types, and the license, under
# the version of Laneway. Nothing is fetched; a tool that is missing is said, and its part left out.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 npm_config_cache=$work/npm npm_config_update_notifier=false
version=$(sed -nE 's/^#define LW_VERSION_STRING "(.*)"/\1/p' "$root/include/laneway/laneway.h")
failures=0

same() # WHAT FOUND EXPECTED
{
    [ "$2" = "$3" ] && return
    printf '%s:\n%s\ninstead of\n%s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
}

for client in python node; do
    cmp "$root/LICENSE" "$root/clients/$client/LICENSE" || failures=$((failures + 1))
done

# Python: what setuptools would install, imported from there.
cp -r "$root/clients/python" "$work/python"
cd "$work/python"
same "version in pyproject.toml" "$(sed -nE 's/^version = "(.*)"/\1/p' pyproject.toml)" "$version"
if python3 -c 'import setuptools, sys; sys.exit(int(setuptools.__version__.split(".")[0]) < 61)' 2>/dev/null; then
    python3 -c 'import setuptools; setuptools.setup()' -q build --build-lib "$work/installed"
    same "installed for Python" "$(cd "$work/installed" && find . -type f | sort)" \
        "$(find ./laneway -type f | sort)"
    python3 -c 'import setuptools; setuptools.setup()' -q sdist --dist-dir "$work"
    same "license of the source package" \
        "$(tar -xzOf "$work/laneway-$version.tar.gz" "laneway-$version/LICENSE" | cksum)" \
        "$(cksum <"$root/LICENSE")"
    if python3 -c 'import wheel' 2>/dev/null; then
        python3 -c 'import setuptools; setuptools.setup()' -q bdist_wheel --dist-dir "$work"
        same "licenses in the wheel" \
            "$(python3 -m zipfile -l "$work"/laneway-"$version"-*.whl | grep -c '/LICENSE ')" 1
    fi
    PYTHONPATH=$work/installed
else
    echo "no setuptools of 61 or later: what it would install is not looked at" >&2
    PYTHONPATH=$work/python
fi
export PYTHONPATH
cd /
same "__version__" "$(python3 -c 'import laneway, laneway.testing; print(laneway.__version__)')" "$version"

# Node: what npm would pack, required and imported from there.
if command -v npm >/dev/null; then
    cd "$root/clients/node"
    npm pack --silent --pack-destination "$work" >/dev/null
    mkdir -p "$work/app/node_modules"
    tar -xzf "$work/laneway-$version.tgz" -C "$work/app/node_modules"
    mv "$work/app/node_modules/package" "$work/app/node_modules/laneway"
    same "packed for Node" \
        "$(cd "$work/app/node_modules/laneway" && find . -type f | sort)" \
        "$( (find ./lib -type f; printf '%s\n' ./LICENSE ./README.md ./package.json) | sort)"
    cd "$work/app"
    same "names" "$(node -e 'console.log(Object.keys(require("laneway")).sort().join())')" \
        "$(node --input-type=module -e 'import * as all from "laneway";
            console.log(Object.keys(all).sort().join())')"
    node --input-type=module -e 'import { call, callBatch } from "laneway/testing"; call && callBatch'
else
    echo "npm is not installed: what it would pack is not looked at" >&2
fi
exit $((failures > 0))
