#!/usr/bin/env bash
# The clients in other languages, each against a local service on a real engine.
#
#   .ci/clients.sh fetch DIR     installs what the tests of the Python client need into DIR, from PyPI, and prints its version
#   .ci/clients.sh python DIR    its lint and types, its tests from outside, redis-py's own of its locks, and the scenes of every client
#   .ci/clients.sh java [DIR]    ShedLock's own kit of tests against the Java client, its own tests, and the scenes; gets the kit from Maven Central
#   .ci/clients.sh go DIR        the scenes, played by the client in Go that was written from the pages
#   .ci/clients.sh generator NAME DIR    installs a generator of clients into DIR, and prints its version
#   .ci/clients.sh generated NAME DIR    generates a client from the served document, which takes a lock, a run and a limit
#
# NAME is openapi-python-client (Python 3.11 with venv), openapi-typescript (npm), oapi-codegen (Go 1.26) or openapi-generator (Java 17, Maven,
# npm). The client in Python needs Python 3.11 with venv, the one in Java Java 17 and Maven, the one in Go Go 1.22.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly START_SEC=60
# The oldest that mypy knows, and the newest.
readonly VERSIONS=(3.10 3.14)

fetch() {
  mkdir -p "$1"
  python3 -m venv "$1" > "$1/install.log" 2>&1
  "$1/bin/pip" install --quiet --requirement .ci/python/requirements.txt >> "$1/install.log" 2>&1
  python3 -m venv --without-pip "$1/bare"
  # redis-py's own tests are in its source alone.
  local tests=$1/redis-py/tests
  mkdir -p "$tests/test_asyncio"
  "$1/bin/pip" download --quiet --no-deps --no-binary :all: --dest "$1/redis-py" "$(grep ^redis== .ci/python/requirements.txt)" >> "$1/install.log" 2>&1
  tar --extract --file "$1"/redis-py/redis-*.tar.gz --directory "$1/redis-py" --strip-components 1 --wildcards '*/tests/test_lock.py' '*/tests/test_asyncio/test_lock.py'
  touch "$tests/__init__.py" "$tests/test_asyncio/__init__.py"
  "$1/bin/python" --version
}

# served COMMAND...: runs it with HOLDFAST_URL set to a service, which ends with it.
served() {
  local port log end=$((SECONDS + START_SEC))
  log=$(mktemp)
  port=$(node -e 'const s = require("node:net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
  PORT=$port node --import tsx infra/local/start.ts > "$log" 2>&1 &
  local server=$!
  trap "kill $server 2> /dev/null || true; wait $server 2> /dev/null || true; rm -f '$log'" EXIT
  until grep -q '^engine: ' "$log"; do
    if [[ $SECONDS -ge $end ]] || ! kill -0 "$server" 2> /dev/null; then cat "$log" >&2 && exit 1; fi
    sleep 0.2
  done
  HOLDFAST_URL=http://127.0.0.1:$port "$@"
}

# under NAME: the tests of the Python client under this Python: of the path, or of those that pyenv has and keeps off the path.
under() {
  local python
  for python in "$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/${1#python}".*/bin/python; do
    if ! "$python" --version > /dev/null 2>&1; then continue; fi
    { printf '\n=== the client in Python under %s, alone\n' "$("$python" --version | tr '\n' ' ')"; "$python" -m unittest clients/python/tests/test_client.py 2>&1; } \
      | { output=$(cat) && printf '%s\n' "$output"; }
    return
  done
  echo "NOT RUN: the client in Python under $1, which is not on this machine."
}

# asked DIR: the tests of the Python client that ask a service.
asked() {
  "$1/bin/pytest" -p no:cacheprovider clients/python/tests/test_client.py clients/python/tests/test_pages.py
  # With nothing installed, under every Python that is there, two at once: they mostly wait.
  printf '%s\n' "$1/bare/bin/python" python3.9 python3.10 python3.12 python3.13 python3.14 pypy3 | xargs -P 2 -I NAME .ci/clients.sh under NAME
  cp clients/python/tests/redis_py/conftest.py "$1/redis-py/tests"
  HOLDFAST_KITS=$PWD/test/support/kits.json \
    "$1/bin/pytest" -p no:cacheprovider -o asyncio_mode=auto --rootdir "$1/redis-py" "$1/redis-py/tests"
}

readonly ROOT=$PWD GENERATED=$PWD/.ci/generated
readonly OAPI_CODEGEN=v2.8.2 OPENAPI_GENERATOR=7.25.0

# generator NAME DIR
generator() {
  mkdir -p "$2"
  local dir
  dir=$(cd "$2" && pwd)
  case $1 in
    openapi-python-client)
      python3 -m venv "$dir"
      "$dir/bin/pip" install --quiet --requirement "$GENERATED/requirements.txt"
      ;;
    openapi-typescript) npm_install "$dir" ;;
    oapi-codegen)
      GOTOOLCHAIN=local GOBIN=$dir go install "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$OAPI_CODEGEN"
      cd "$GENERATED/go" && GOTOOLCHAIN=local go mod download
      ;;
    openapi-generator)
      npm_install "$dir"
      mvn --batch-mode --quiet dependency:copy -Dmdep.stripVersion=true -DoutputDirectory="$dir" \
        -Dartifact=org.openapitools:openapi-generator-cli:$OPENAPI_GENERATOR
      ;;
  esac > "$dir/install.log" 2>&1
}

npm_install() {
  cp "$GENERATED"/package*.json "$1"
  npm ci --ignore-scripts --no-audit --no-fund --prefix "$1"
}

# generated NAME DIR: with HOLDFAST_URL.
generated() {
  local dir
  dir=$(cd "$2" && pwd)
  cd "$dir"
  node -e 'fetch(`${process.env.HOLDFAST_URL}/v1/openapi.json`).then(async (answer) => process.stdout.write(await answer.text()))' > openapi.json
  case $1 in
    openapi-python-client)
      bin/openapi-python-client generate --path openapi.json --config "$GENERATED/python.yml" --output-path generated \
        --meta none --overwrite --fail-on-warning
      PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$dir bin/python "$GENERATED/client.py"
      ;;
    openapi-typescript)
      # Without the option, a member that has a default would be required of a request.
      node_modules/.bin/openapi-typescript openapi.json --default-non-nullable false --output generated.d.ts
      compiled typescript
      ;;
    oapi-codegen)
      cp "$GENERATED"/go/* .
      ./oapi-codegen -generate types,client -package main -o client.go openapi.json
      GOTOOLCHAIN=local go run .
      ;;
    openapi-generator)
      rm -rf fetch
      java -jar openapi-generator-cli.jar generate --generator-name typescript-fetch --input-spec openapi.json --output fetch > generate.log 2>&1 \
        || { cat generate.log && return 1; }
      compiled fetch
      ;;
  esac
}

# compiled NAME: types and runs a program of .ci/generated.
compiled() {
  cp "$GENERATED/$1.ts" "$GENERATED/lease-id.ts" .
  node_modules/.bin/tsc --noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler --types node "$1.ts"
  node --import "$ROOT/node_modules/tsx/dist/loader.mjs" "$1.ts"
}

case ${1-} in
  fetch) fetch "$2" ;;
  python)
    "$2/bin/ruff" check --no-cache --config clients/python/pyproject.toml clients/python
    # For who has botocore and redis, and for who has neither.
    for python in "$2/bin/python" "$2/bare/bin/python"; do
      for version in "${VERSIONS[@]}"; do
        "$2/bin/mypy" --strict --python-executable "$python" --python-version "$version" --cache-dir "$2/mypy" clients/python/holdfast
      done
    done
    export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/clients/python
    (served asked "$2")
    # The scenes that every client plays.
    drivers=clients/python/tests
    HOLDFAST_DRIVER="python=$2/bin/python $drivers/driver.py;asyncio=$2/bin/python $drivers/driver_asyncio.py" \
      npx vitest run --project waiting test/clients
    ;;
  java)
    mkdir -p "${2-.engine/java}"
    dir=$(cd "${2-.engine/java}" && pwd)
    (served mvn --batch-mode --quiet --file clients/java/pom.xml -Dbuild.dir="$dir/build" test)
    # All of them passed. The file is what docs/evidence.md tells.
    node -e '
      const { readFileSync, writeFileSync } = require("node:fs");
      const [report, file] = process.argv.slice(1);
      const [, passed] = /<testsuite [^>]* tests="(\d+)"/.exec(readFileSync(report, "utf8"));
      const [, version] = /<shedlock.version>([^<]+)</.exec(readFileSync("clients/java/pom.xml", "utf8"));
      const kits = { ...JSON.parse(readFileSync(file, "utf8")), "ShedLock'"'"'s kit for a provider": { version, passed: Number(passed), cannot: {} } };
      writeFileSync(file, `${JSON.stringify(Object.fromEntries(Object.entries(kits).sort()), null, 2)}\n`);' \
      "$dir/build/surefire-reports/TEST-holdfast.HoldfastLockProviderTest.xml" test/support/kits.json
    HOLDFAST_DRIVER="java=java -XX:TieredStopAtLevel=1 -cp $dir/build/classes:$dir/build/test-classes holdfast.Driver" npx vitest run --project waiting test/clients
    ;;
  go)
    mkdir -p "$2"
    dir=$(cd "$2" && pwd)
    export GOTOOLCHAIN=local
    (cd examples/go && go vet ./... && test -z "$(gofmt -l . | tee /dev/stderr)" && go build -o "$dir/driver" ./driver)
    HOLDFAST_DRIVER="go=$dir/driver" npx vitest run --project waiting test/clients
    ;;
  generator) generator "$2" "$3" && echo "$2" ;;
  generated) served .ci/clients.sh generate "$2" "$3" ;;
  # With HOLDFAST_URL.
  generate) generated "$2" "$3" ;;
  under) under "$2" ;;
  *) sed -n '2,13p' "$0" >&2 && exit 2 ;;
esac
