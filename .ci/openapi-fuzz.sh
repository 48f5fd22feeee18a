#!/usr/bin/env bash
# The OpenAPI document and the service under Schemathesis, a generator of requests by somebody else: examples, limits of
# each field, random requests, and sequences along the document's links.
#
#   .ci/openapi-fuzz.sh fetch DIR    installs it from PyPI into DIR, prints its version
#   .ci/openapi-fuzz.sh run DIR      starts the local service, runs it with a fixed seed, and a control that must fail
#
# Needs Python 3.10 with venv. The seed fixes the requests, except for the time in the leaseIds. The sequences last 120 s.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SETTINGS=.ci/openapi-fuzz SEED=1 EXAMPLES=40 SEQUENCES_SEC=120 START_SEC=60
# Answers that the sequences must have got, or they proved little.
readonly NEEDED='["acquire 201", "renew 200", "check 200", "release 204", "transfer 200", "break 202", "acquireSet 201", "releaseSet 200",
  "start 201", "renewRun 200", "complete 200", "abandonRun 204", "run 200"]'

fetch() {
  mkdir -p "$1"
  python3 -m venv "$1" > "$1/install.log" 2>&1
  "$1/bin/pip" install --quiet --requirement "$SETTINGS/requirements.txt" >> "$1/install.log" 2>&1
  "$1/bin/schemathesis" --version | tail -n 1
}

# generate DIR URL OPTION...: in DIR, where it leaves its notes.
generate() (
  local settings=$PWD/$SETTINGS url=$2
  cd "$1"
  shift 2
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$settings" SCHEMATHESIS_HOOKS=hooks bin/schemathesis --config-file "$settings/schemathesis.toml" \
    run "$url/v1/openapi.json" --seed $SEED --generation-database none --suppress-health-check all --no-color \
    --request-timeout 20 "$@"
)

run() {
  local dir=$1 port url log counts
  log=$(mktemp) counts=$(mktemp)
  port=$(node -e 'const s = require("node:net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
  url=http://127.0.0.1:$port
  # So the service has an agent. Nobody answers there, so no target is ever told.
  AWS_ENDPOINT_URL_SFN=http://127.0.0.1:9 PORT=$port node --import tsx infra/local/start.ts > "$log" 2>&1 &
  local server=$!
  trap "kill $server 2> /dev/null || true; wait $server 2> /dev/null || true; rm -f '$log' '$counts'" EXIT
  until grep -q '^engine: ' "$log"; do
    if [[ $SECONDS -ge $START_SEC ]] || ! kill -0 "$server" 2> /dev/null; then cat "$log" >&2 && exit 1; fi
    sleep 0.2
  done

  printf '\n=== requests, valid ones and others\n'
  generate "$dir" "$url" --phases examples,coverage,fuzzing --max-examples $EXAMPLES --continue-on-failure
  printf '\n=== sequences along the links\n'
  FUZZ_COUNTS=$counts generate "$dir" "$url" --phases stateful --mode positive --max-time $SEQUENCES_SEC --continue-on-failure
  node -e '
    const counts = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"));
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const never = JSON.parse(process.argv[2]).filter((answer) => !(answer in counts));
    console.log(`${total} requests; ${JSON.parse(process.argv[2]).map((answer) => `${answer}: ${counts[answer] ?? 0}`).join(", ")}`);
    if (never.length > 0) console.error(`never happened: ${never.join(", ")}`);
    process.exitCode = never.length > 0 ? 1 : 0;' "$counts" "$NEEDED"

  printf '\n=== control: a document that promises something else\n'
  if FUZZ_CONTROL=1 generate "$dir" "$url" --phases stateful --max-examples 10 --no-shrink > "$log.control" 2>&1; then
    cat "$log.control"
    echo "The control passed: nothing is checked." >&2
    return 1
  fi
  grep -E 'Response violates schema: [0-9]+' "$log.control"
  rm -f "$log.control"
}

case ${1-} in
  fetch) fetch "$2" ;;
  run) run "$2" ;;
  *) sed -n '2,8p' "$0" >&2 && exit 2 ;;
esac
