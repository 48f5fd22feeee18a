#!/usr/bin/env bash
# The clients in other languages, each against a local service on a real engine.
#
#   .ci/clients.sh fetch DIR     installs what the tests of the Python client need into DIR, from PyPI, and prints its version
#   .ci/clients.sh python DIR    its lint and types, its tests from outside, and the scenes of every client
#   .ci/clients.sh java          ShedLock's own kit of tests against the Java client; gets the kit from Maven Central
#
# Needs Python 3.11 with venv, or Java 17 and Maven.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly START_SEC=60

fetch() {
  mkdir -p "$1"
  python3 -m venv "$1" > "$1/install.log" 2>&1
  "$1/bin/pip" install --quiet --requirement .ci/python/requirements.txt >> "$1/install.log" 2>&1
  "$1/bin/python" --version
}

# served COMMAND...: runs it with HOLDFAST_URL set to a service, which ends with it.
served() {
  local port log
  log=$(mktemp)
  port=$(node -e 'const s = require("node:net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
  PORT=$port node --import tsx infra/local/start.ts > "$log" 2>&1 &
  local server=$!
  trap "kill $server 2> /dev/null || true; wait $server 2> /dev/null || true; rm -f '$log'" EXIT
  until grep -q '^engine: ' "$log"; do
    if [[ $SECONDS -ge $START_SEC ]] || ! kill -0 "$server" 2> /dev/null; then cat "$log" >&2 && exit 1; fi
    sleep 0.2
  done
  HOLDFAST_URL=http://127.0.0.1:$port "$@"
}

case ${1-} in
  fetch) fetch "$2" ;;
  python)
    "$2/bin/ruff" check --no-cache --config clients/python/pyproject.toml clients/python
    "$2/bin/mypy" --strict --cache-dir "$2/mypy" clients/python/holdfast
    export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=clients/python
    (served "$2/bin/pytest" -p no:cacheprovider clients/python/tests)
    # The scenes that every client plays.
    drivers=clients/python/tests
    HOLDFAST_DRIVER="python=$2/bin/python $drivers/driver.py;asyncio=$2/bin/python $drivers/driver_asyncio.py" \
      npx vitest run --project waiting test/clients
    ;;
  java) served mvn --batch-mode --quiet --file .ci/shedlock/pom.xml test ;;
  *) sed -n '2,8p' "$0" >&2 && exit 2 ;;
esac
