#!/usr/bin/env bash
# The template for accounts without the CDK under cfn-lint, which knows CloudFormation's own schemas, with the page's
# examples for SAM, the Serverless Framework and Terraform, and the zip under Python's reader of zip files.
#
#   .ci/template-lint.sh fetch DIR    installs cfn-lint from PyPI into DIR, prints its version
#   .ci/template-lint.sh run DIR      builds the template and checks all of it, and a control that must fail
#
# Needs Python 3.11 with venv.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PAGE=docs/without-the-cdk.md
# W3005: the CDK says by DependsOn what GetAtt says already. W3002: a path that `sam deploy` replaces by an address.
readonly KNOWN=W3005 KNOWN_OF_SAM=W3002

fetch() {
  mkdir -p "$1"
  python3 -m venv "$1" > "$1/install.log" 2>&1
  "$1/bin/pip" install --quiet --requirement .ci/template-lint/requirements.txt >> "$1/install.log" 2>&1
  "$1/bin/cfn-lint" --version
}

# block LANGUAGE: the page's only block in it.
block() {
  awk -v fence="\`\`\`$1" '$0 == "```" { inside = 0 } inside { print } $0 == fence { inside = 1 }' "$PAGE"
}

run() {
  local dir=$1 made template
  made=$(mktemp -d)
  trap "rm -rf '$made'" EXIT
  # Where the page's templates look for it.
  template=$made/node_modules/holdfast/dist/template/holdfast.template.json
  npx tsx infra/template.ts "${template%/*}"
  "$dir/bin/cfn-lint" --ignore-checks $KNOWN --template "$template"
  "$dir/bin/cfn-lint" --ignore-checks $KNOWN --template "${template%/*}/holdfast-in-region.template.json"
  "$dir/bin/python" -m zipfile --test "${template%/*}/function.zip"

  block yaml > "$made/sam.yaml"
  "$dir/bin/cfn-lint" --ignore-checks $KNOWN_OF_SAM --template "$made/sam.yaml"
  block yml > "$made/serverless.yml"
  "$dir/bin/python" -c 'import json, sys; from cfnlint.decode import cfn_yaml; print(json.dumps(cfn_yaml.load(sys.argv[1])["resources"]))' \
    "$made/serverless.yml" > "$made/serverless.template.json"
  "$dir/bin/cfn-lint" --template "$made/serverless.template.json"
  block hcl > "$made/main.tf"
  "$dir/bin/python" -c 'import hcl2, sys; print("Terraform:", ", ".join(sorted(hcl2.load(open(sys.argv[1])))))' "$made/main.tf"

  printf '\n=== control: a runtime and a property that there are not\n'
  sed 's/nodejs24\.x/nodejs99.x/; s/"MemorySize":/"MemoryBytes":/' "$template" > "$made/wrong.template.json"
  if "$dir/bin/cfn-lint" --ignore-checks $KNOWN --template "$made/wrong.template.json" > "$made/control.log" 2>&1; then
    echo "The control passed: nothing is checked." >&2
    return 1
  fi
  grep -E '^E[0-9]+ .*(nodejs99|MemoryBytes)' "$made/control.log"
}

case ${1-} in
  fetch) fetch "$2" ;;
  run) run "$2" ;;
  *) sed -n '2,8p' "$0" >&2 && exit 2 ;;
esac
