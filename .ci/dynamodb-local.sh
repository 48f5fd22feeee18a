#!/usr/bin/env bash
# AWS's DynamoDB Local of today, from Maven Central: the reference that the embedded engine is held to.
#
#   .ci/dynamodb-local.sh fetch DIR              gets the newest release into DIR, sees that it runs, prints its version
#   .ci/dynamodb-local.sh with DIR COMMAND...    runs the command with DYNAMODB_ENDPOINT set to one, in memory, on a
#                                                free port; ends it afterwards. Status 69: it can't be started
#
# Needs Java 17, and Maven to fetch. What was fetched before serves when Maven Central can't be reached.
set -euo pipefail

# Version 3 and later, and version 2, which has no successor under its old name.
readonly CURRENT=software.amazon.dynamodb LEGACY=com.amazonaws
# Parts of AWS's SDK that it needs. Where a mirror lacks the versions it names, the newest do as well.
readonly SDK_PARTS=(dynamodb-enhanced cognitoidentity cognitoidentityprovider pinpoint)
readonly START_SEC=30

dependency() {
  echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>RELEASE</version></dependency>"
}

# get DIR DEPENDENCY...: copies the dependencies and all they need into DIR/lib, if that then runs.
get() {
  local dir=$1
  shift
  rm -rf "$dir/new"
  mkdir -p "$dir/new"
  cat > "$dir/new/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>reference</artifactId><version>1</version>
  <dependencies>$*</dependencies>
</project>
POM
  mvn --batch-mode --quiet --update-snapshots --file "$dir/new/pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$dir/new/lib" > "$dir/maven.log" 2>&1 \
    && runs "$dir/new" && rm -rf "$dir/lib" && mv "$dir/new/lib" "$dir/lib"
}

runs() { (with "$1" true); }

# await_answer PORT PID: until the port answers; fails when the process ended or it takes too long.
await_answer() {
  local deadline=$((SECONDS + START_SEC))
  until (: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null; do
    if [[ $SECONDS -ge $deadline ]] || ! kill -0 "$2" 2> /dev/null; then return 1; fi
    sleep 0.2
  done
}

version() {
  local jar
  jar=$(ls "$1"/lib/DynamoDBLocal-*.jar 2> /dev/null) || return 1
  jar=${jar##*/DynamoDBLocal-}
  echo "${jar%.jar}"
}

fetch() {
  local dir part parts=()
  for part in "${SDK_PARTS[@]}"; do parts+=("$(dependency software.amazon.awssdk "$part")"); done
  mkdir -p "$1"
  dir=$(cd "$1" && pwd) # Maven takes paths from the pom's directory.
  get "$dir" "$(dependency $CURRENT DynamoDBLocal)" \
    || get "$dir" "$(dependency $CURRENT DynamoDBLocal)" "${parts[@]}" \
    || get "$dir" "$(dependency $LEGACY DynamoDBLocal)" \
    || echo "DynamoDB Local could not be fetched anew: see $dir/maven.log" >&2
  rm -rf "$dir/new"
  version "$dir"
}

serve() {
  local main=software.amazon.dynamodb.services.local.main.ServerRunner
  case $(version "$1") in 1.* | 2.*) main=com.amazonaws.services.dynamodbv2.local.main.ServerRunner ;; esac
  exec java -Djava.library.path="$1/lib" -cp "$1/lib/*" "$main" -inMemory -sharedDb -disableTelemetry -port "$2"
}

# with DIR COMMAND...: in a shell of its own, since it leaves a trap to end the engine.
with() {
  local dir=$1 port log
  shift
  log=$(mktemp)
  port=$(node -e 'const s = require("node:net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
  serve "$dir" "$port" > "$log" 2>&1 &
  local server=$!
  trap "kill $server 2> /dev/null || true; wait $server 2> /dev/null || true; rm -f '$log'" EXIT
  if ! await_answer "$port" "$server"; then
    echo "DynamoDB Local did not start: $(grep -m 1 -i -E 'exception|error' "$log" || tail -n 1 "$log")" >&2
    exit 69
  fi
  DYNAMODB_ENDPOINT=http://127.0.0.1:$port "$@"
}

case ${1-} in
  fetch) fetch "$2" ;;
  with) with "${@:2}" ;;
  *) sed -n '2,8p' "$0" >&2 && exit 2 ;;
esac
