"""
Starts MiniStack, an emulator of AWS, with what it lacks and AWS has. Each row is one difference, with the page of AWS's documentation that
it follows. requirements.txt pins the version, since a row replaces a function of MiniStack by its name.

A row is off while the folder SHIM_OFF has a file of its name: a test that needs the row must fail then.
"""

import contextvars
import hashlib
import json
import os
import re
import threading
import time
import urllib.error
import urllib.request

import ministack.app as app
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from ministack.core import iam_actions, iam_evaluator, lambda_runtime, sigv4
from ministack.services import apigateway, cloudwatch, ec2, lambda_durable, lambda_svc
from ministack.services import stepfunctions as states
from ministack.services import sts
from ministack.services.cloudformation import provisioners

DOCS = "https://docs.aws.amazon.com"
PORT = os.environ["GATEWAY_PORT"]
REGION = "us-east-1"
ROWS = {}


def row(page):
    """Registers a difference: the function installs it, and its docstring says what AWS does."""

    def register(install):
        ROWS[install.__name__] = {"says": install.__doc__, "page": DOCS + page, "install": install}
        return install

    return register


def is_off(name):
    folder = os.environ.get("SHIM_OFF")
    return folder is not None and os.path.exists(os.path.join(folder, name))


def replace(module, name, by):
    """Replaces a function of MiniStack by one that gets the original first."""
    original = getattr(module, name)
    setattr(module, name, lambda *args, **more: by(original, *args, **more))


@row("/amazondynamodb/latest/developerguide/specifying-conditions.html")
def leading_keys():
    """A policy can compare `dynamodb:LeadingKeys`, the partition keys of a request."""
    partition_key = "p"

    def keys_in(data):
        names, values = data.get("ExpressionAttributeNames") or {}, data.get("ExpressionAttributeValues") or {}
        items = [data.get("Key"), data.get("Item")]
        for operation in data.get("TransactItems") or []:
            items += [one.get(part) for one in operation.values() for part in ("Key", "Item")]
        found = [next(iter(item[partition_key].values())) for item in items if item and partition_key in item]
        for name, value in re.findall(r"([#\w.]+)\s*=\s*(:\w+)", data.get("KeyConditionExpression") or ""):
            if names.get(name, name) == partition_key and value in values:
                found.append(next(iter(values[value].values())))
        return found

    def context(original, body):
        made = original(body)
        keys = [] if is_off("leading_keys") else keys_in(json.loads(body or b"{}"))
        return {**made, "dynamodb:LeadingKeys": keys} if keys else made

    replace(iam_actions, "dynamodb_service_context", context)


@row("/AWSCloudFormation/latest/TemplateReference/aws-resource-logs-querydefinition.html")
def query_definition():
    """CloudFormation makes `AWS::Logs::QueryDefinition`. Here it is only recorded."""
    made = {}

    def create(logical_id, properties, stack_name):
        made_id = hashlib.sha256((stack_name + logical_id).encode()).hexdigest()[:32]
        made[made_id] = properties
        return made_id, {"QueryDefinitionId": made_id}

    def update(made_id, _before, after, _stack_name):
        made[made_id] = after
        return made_id, {"QueryDefinitionId": made_id}

    provisioners._RESOURCE_HANDLERS["AWS::Logs::QueryDefinition"] = {
        "create": create,
        "update": update,
        "delete": lambda made_id, _properties: made.pop(made_id, None),
    }


@row("/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-function.html")
def function_properties():
    """CloudFormation sets a function's `DurableConfig` and `ReservedConcurrentExecutions`, and a new function may have none of its own."""
    handlers = provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"]

    def completing(provision, at):
        def provisions(*args, **more):
            made = provision(*args, **more)
            function, properties = lambda_svc._functions.get(made[0]), args[at]
            if function and properties.get("DurableConfig"):
                function["config"]["DurableConfig"] = {**properties["DurableConfig"], "Enabled": True}
            if function and properties.get("ReservedConcurrentExecutions") is not None:
                function["concurrency"] = int(properties["ReservedConcurrentExecutions"])
            return made

        return provisions

    handlers["create"] = completing(handlers["create"], 1)
    handlers["update"] = completing(handlers["update"], 2)


@row("/IAM/latest/UserGuide/reference_policies_condition-keys.html")
def secure_transport():
    """A request to AWS comes by TLS, which the CDK's own bucket asks for. One to this machine counts as such."""

    def resolve(original, key, context):
        return "true" if key.lower() == "aws:securetransport" else original(key, context)

    replace(iam_evaluator, "_resolve_condition_key", resolve)


@row("/IAM/latest/UserGuide/reference_policies_elements_resource.html")
def wildcard_of_all_characters():
    """`*` in a policy's resource matches every character, a line feed too."""

    def pattern(original, text, ignore_case):
        compiled = original(text, ignore_case)
        return compiled if is_off("wildcard_of_all_characters") else re.compile(compiled.pattern, compiled.flags | re.DOTALL)

    replace(iam_evaluator, "_fnmatch_compile", pattern)


@row("/IAM/latest/UserGuide/reference_sigv-create-signed-request.html")
def signed_body():
    """A signature is of the body that was sent, whatever the header `x-amz-content-sha256` says."""

    def documents(original, signature, method, path, query, headers, body, **more):
        if signature.service in ("execute-api", "lambda") and "x-amz-content-sha256" in headers and not is_off("signed_body"):
            headers = {**headers, "x-amz-content-sha256": hashlib.sha256(body).hexdigest()}
        return original(signature, method, path, query, headers, body, **more)

    replace(sigv4, "header_signing_documents", documents)


@row("/apigateway/latest/developerguide/http-api-quotas.html")
def largest_body():
    """An HTTP API refuses a body of over 10 MB by 413."""
    most = 10 * 1024 * 1024

    async def handle(original, host, path, method, headers, body, query_params, **more):
        if app._parse_execute_api_url(host, path) and len(body or b"") > most and not is_off("largest_body"):
            return 413, {"Content-Type": "application/json"}, b'{"message":"Request Entity Too Large"}'
        return await original(host, path, method, headers, body, query_params, **more)

    replace(app, "_handle_execute_api_request", handle)


@row("/apigateway/latest/developerguide/http-api-throttling.html")
def throttle():
    """A stage's settings throttle its routes, by a bucket of tokens, with 429."""
    buckets = {}

    async def invoke(original, integration, api_id, stage, path, method, headers, body, query_params, route_key="$default", *args, **more):
        settings = apigateway.stages_for_api(api_id).get(stage) or {}
        limits = (settings.get("routeSettings") or {}).get(route_key) or settings.get("defaultRouteSettings") or {}
        limits = {name.lower(): value for name, value in limits.items()}
        rate, burst = float(limits.get("throttlingratelimit") or 0), float(limits.get("throttlingburstlimit") or 0)
        if rate and burst and not is_off("throttle"):
            now = time.monotonic()
            tokens, since = buckets.get((api_id, route_key), (burst, now))
            tokens = min(burst, tokens + (now - since) * rate)
            buckets[(api_id, route_key)] = (tokens - 1 if tokens >= 1 else tokens, now)
            if tokens < 1:
                return 429, {"Content-Type": "application/json"}, b'{"message":"Too Many Requests"}'
        return await original(integration, api_id, stage, path, method, headers, body, query_params, route_key, *args, **more)

    replace(apigateway, "_invoke_lambda_proxy", invoke)


@row("/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html")
def absent_path_parameters():
    """An event of the payload format 2.0 leaves out what a request doesn't have."""

    def execute(original, record, event, *args, **more):
        if isinstance(event, dict) and event.get("version") == "2.0" and event.get("pathParameters", 0) is None:
            if not is_off("absent_path_parameters"):
                event.pop("pathParameters")
        return original(record, event, *args, **more)

    replace(lambda_svc, "_execute_function_with_config_scope", execute)


@row("/lambda/latest/dg/lambda-runtime-environment.html")
def environments_that_begin_at_once():
    """Each execution environment gets its role's credentials, however many begin at once."""
    lock = threading.RLock()

    def one_at_a_time(original, *args, **more):
        with lock:
            return original(*args, **more)

    for name in ("register_session", "_evict_expired_sessions"):
        replace(sts, name, one_at_a_time)


@row("/lambda/latest/dg/lambda-concurrency.html")
def environments_of_their_own():
    """An execution environment that can't be started fails its own request. The function's other requests go on."""

    def invoke(original, worker, *args, **more):
        try:
            return original(worker, *args, **more)
        except Exception as error:
            return {"status": "error", "error": str(error)}

    replace(lambda_runtime.Worker, "invoke", invoke)


@row("/lambda/latest/dg/urls-configuration.html")
def address_of_a_function_url():
    """A function URL leads to Lambda. Here it leads to this machine, as the addresses of APIs do."""

    def attributes(original, config):
        made = original(config)
        host = made["FunctionUrl"].split("//")[1].replace(".on.aws/", f".localhost:{PORT}")
        return {**made, "FunctionUrl": f"http://{host}/"}

    replace(provisioners, "_lambda_url_attributes", attributes)


@row("/lambda/latest/dg/urls-auth.html")
def rights_of_a_function_url():
    """Its callers sign for `lambda` in its Region, and need `lambda:InvokeFunction` by a function URL too."""

    async def handle(original, host, path, method, headers, body, query_params, **more):
        parsed = app._parse_lambda_url(host, path)
        signed = headers.get("authorization", "")
        if parsed and signed and f"/{REGION}/lambda/aws4_request" not in signed:
            return 403, {"Content-Type": "application/json"}, b'{"Message":"Credential should be scoped to correct service: \'lambda\'."}'
        if parsed and signed and not is_off("rights_of_a_function_url"):
            resource, _, _ = app._function_url_auth_target(parsed[0])
            by_url = {"resource_arn": resource, "service_context": {"lambda:InvokedViaFunctionUrl": "true"}}
            denied = app._enforce_data_plane("lambda", "lambda:InvokeFunction", headers, query_params, "", **by_url)
            if denied:
                return denied
        return await original(host, path, method, headers, body, query_params, **more)

    replace(app, "_handle_lambda_url_request", handle)


@row("/lambda/latest/dg/urls-invocation.html")
def event_of_a_function_url():
    """The event has the caller, and the path as it was sent. The function is invoked by the URL's alias."""
    raw_path_of_request = contextvars.ContextVar("raw_path", default=None)

    async def handle(original, *args, raw_path=None, **more):
        raw_path_of_request.set(raw_path)
        return await original(*args, raw_path=raw_path, **more)

    replace(app, "_handle_special_data_plane_request", handle)

    def event(original, url_id, account_id, region, method, path, headers, body, query_params, **more):
        made = original(url_id, account_id, region, method, path, headers, body, query_params, **more)
        made["rawPath"] = made["requestContext"]["http"]["path"] = raw_path_of_request.get() or path
        made["requestContext"]["authorizer"] = {"iam": apigateway._iam_caller_identity_v2(headers, query_params)}
        return made

    replace(lambda_svc, "_build_function_url_event", event)

    def execute(original, record, event, *args, **more):
        context = event.get("requestContext") if isinstance(event, dict) else None
        found = isinstance(context, dict) and ".lambda-url." in context.get("domainName", "") and lambda_svc.resolve_function_url(context["apiId"])
        if found and found[3]:
            arn = f"arn:aws:lambda:{found[1]}:{found[0]}:function:{found[2]}:{found[3]}"
            record = {**record, "config": {**record["config"], "FunctionArn": arn}}
        return original(record, event, *args, **more)

    replace(lambda_svc, "_execute_function_with_config_scope", execute)


@row("/lambda/latest/dg/gettingstarted-limits.html")
def largest_body_of_a_function_url():
    """Lambda takes at most 6 MB."""
    most = 6 * 1024 * 1024

    async def handle(original, host, path, method, headers, body, query_params, **more):
        if app._parse_lambda_url(host, path) and len(body or b"") > most:
            return 413, {"Content-Type": "application/json"}, b'{"Message":"Request Entity Too Large"}'
        return await original(host, path, method, headers, body, query_params, **more)

    replace(app, "_handle_lambda_url_request", handle)


@row("/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html")
def metric_of_an_alarm():
    """An alarm evaluates its own metric, dimensions included, and treats missing data as it says. Here, whenever a metric is put."""

    def evaluate(_original, alarm):
        dimensions = {one["Name"]: one["Value"] for one in alarm.get("Dimensions") or []}
        values = cloudwatch._metrics.get((alarm.get("Namespace"), alarm.get("MetricName"), cloudwatch._dims_key(dimensions))) or []
        since = time.time() - alarm.get("Period", 60) * alarm.get("EvaluationPeriods", 1)
        recent = [one for one in values if one["Timestamp"] >= since]
        before, limit = alarm["StateValue"], alarm.get("Threshold", 0)
        if recent:
            statistic = alarm.get("ExtendedStatistic") or alarm.get("Statistic", "Average")
            value = cloudwatch._stat_value(cloudwatch._calc_stats(recent), statistic, recent)
            rings = {"GreaterThanThreshold": value > limit, "LessThanThreshold": value < limit}[alarm["ComparisonOperator"]]
        else:
            rings = {"breaching": True, "notBreaching": False}.get(alarm.get("TreatMissingData"), before == "ALARM")
        after = "ALARM" if rings else "OK"
        if after != before:
            alarm["StateValue"] = after
            cloudwatch._record_history(alarm["AlarmName"], before, after, "a metric")
            cloudwatch._dispatch_alarm_actions(alarm, before, after, "a metric")

    replace(cloudwatch, "_evaluate_alarm", evaluate)


@row("/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-natgateway.html")
def nat_gateways():
    """A stack may have public addresses and NAT gateways, as the CDK's `Vpc` makes them. Here nothing passes through them."""

    def made(answer, name):
        _status, _headers, body = answer
        return re.search(f"<{name}>(.*?)</{name}>", body.decode()).group(1)

    def allocate(_logical_id, _properties, _stack):
        answer = ec2._allocate_address({})
        address = made(answer, "publicIp")
        return address, {"PublicIp": address, "AllocationId": made(answer, "allocationId")}

    def release(address, _properties):
        for allocation in [key for key, one in ec2._addresses.items() if one["PublicIp"] == address]:
            ec2._release_address({"AllocationId": [allocation]})

    def create(_logical_id, properties, _stack):
        given = {name: [properties[name]] for name in ("SubnetId", "AllocationId", "ConnectivityType") if name in properties}
        gateway = made(ec2._create_nat_gateway(given), "natGatewayId")
        return gateway, {"NatGatewayId": gateway}

    def delete(gateway, _properties):
        ec2._delete_nat_gateway({"NatGatewayId": [gateway]})

    provisioners._RESOURCE_HANDLERS["AWS::EC2::EIP"] = {"create": allocate, "delete": release}
    provisioners._RESOURCE_HANDLERS["AWS::EC2::NatGateway"] = {"create": create, "delete": delete}


execution_of_task = contextvars.ContextVar("execution", default=None)


@row("/step-functions/latest/dg/connect-api-gateway.html")
def state_calls_the_api():
    """A state calls an HTTP API (`apigateway:invoke`), signed as the state machine's role."""

    def execute(original, state, given, execution, context):
        execution_of_task.set(execution)
        return original(state, given, execution, context)

    replace(states, "_execute_task", execute)

    def credentials_of(role):
        account = role.split(":")[4]
        name = role.rsplit("/", 1)[-1]
        function = {"FunctionArn": f"arn:aws:lambda:{REGION}:{account}:function:{name}", "FunctionName": name, "Role": role}
        made = lambda_runtime.execution_credentials(function)
        return Credentials(made["AWS_ACCESS_KEY_ID"], made["AWS_SECRET_ACCESS_KEY"], made["AWS_SESSION_TOKEN"])

    def invoke(_resource, given):
        machine = states._state_machines.get((execution_of_task.get() or {}).get("stateMachineArn", "")) or {}
        body = given.get("RequestBody")
        data = json.dumps(body).encode() if body is not None else b""
        path = ("/" + given["Stage"] if given.get("Stage") else "") + given.get("Path", "")
        query = "&".join(f"{name}={value}" for name, values in (given.get("QueryParameters") or {}).items() for value in values)
        headers = {name: ",".join(value) if isinstance(value, list) else value for name, value in (given.get("Headers") or {}).items()}
        headers["Host"] = f"{given['ApiEndpoint'].split('.')[0]}.execute-api.localhost:{PORT}"
        url = f"http://127.0.0.1:{PORT}{path}" + (f"?{query}" if query else "")
        request = AWSRequest(method=given["Method"], url=url, data=data or None, headers=headers)
        if given.get("AuthType") == "IAM_ROLE":
            SigV4Auth(credentials_of(machine["roleArn"]), "execute-api", REGION).add_auth(request)
        sent = urllib.request.Request(url, data=data or None, method=given["Method"], headers=dict(request.headers))
        try:
            with urllib.request.urlopen(sent, timeout=30) as answer:
                status, text, received = answer.status, answer.read().decode(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            raise states._ExecutionError(f"ApiGateway.{error.code}", error.read().decode())
        try:
            parsed = json.loads(text) if text else ""
        except ValueError:
            parsed = text
        return {"StatusCode": status, "StatusText": "", "Headers": {name: [value] for name, value in received.items()}, "ResponseBody": parsed}

    states._SERVICE_DISPATCH["arn:aws:states:::apigateway:invoke"] = invoke


@row("/step-functions/latest/dg/workflow-variables.html")
def language_of_a_catch():
    """The `Assign` of a catch is in the query language of its state, also if the machine has another."""

    def catch(original, catcher, given, context, language, error):
        return original({"QueryLanguage": language, **catcher}, given, context, language, error)

    replace(states, "_apply_catcher", catch)


@row("/step-functions/latest/apireference/API_SendTaskSuccess.html")
def closed_task():
    """The token of a task that is closed is refused. That a stopped execution closes its tasks is our reading: AWS doesn't say."""
    execution_by_token = {}

    def wait(original, resource, effective, token, state):
        execution_by_token[token] = execution_of_task.get()
        return original(resource, effective, token, state)

    replace(states, "_invoke_with_callback", wait)

    def send(original, data):
        execution = execution_by_token.get(data.get("taskToken"))
        if execution is not None and execution.get("status") != "RUNNING" and not is_off("closed_task"):
            return states.error_response_json("TaskTimedOut", "Task Timed Out: The task is closed.", 400)
        return original(data)

    replace(states, "_send_task_success", send)
    replace(states, "_send_task_failure", send)


@row("/lambda/latest/api/API_StepDetails.html")
def attempts_of_a_step():
    """A durable step that is tried again keeps its number of attempts and, of a wait for a condition, its state."""

    def apply(original, record, update):
        original(record, update)
        if update.get("Type") == "STEP" and update.get("Action") == "RETRY":
            details = next(one for one in record["Operations"] if one.get("Id") == update["Id"]).setdefault("StepDetails", {})
            details["Attempt"] = details.get("Attempt", 0) + 1
            if update.get("Payload") is not None:
                details["Result"] = update["Payload"]

    replace(lambda_durable, "_apply_update", apply)


@row("/lambda/latest/api/API_SendDurableExecutionCallbackSuccess.html")
def closed_callback():
    """The callback of a durable execution that is over is closed."""

    def resolve(original, callback_id):
        record, operation, error = original(callback_id)
        if error or record.get("Status") == "RUNNING":
            return record, operation, error
        message = "The callback ID token has either expired or the callback associated with the token has already been closed."
        return None, None, lambda_durable.error_response_json("CallbackTimeoutException", message, 400)

    replace(lambda_durable, "_resolve_callback", resolve)


for one in ROWS.values():
    one["install"]()

if __name__ == "__main__":
    app.main()
