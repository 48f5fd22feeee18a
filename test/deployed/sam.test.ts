/** The template of docs/without-the-cdk.md for SAM: the service as a nested stack, and a function beside it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, it, vi } from "vitest";
import { zipOf } from "../../infra/zip.js";
import { inXml, invoke, query, upload } from "./aws.js";
import { ROOT_DIRECTORY, TEMPLATE_DIRECTORY } from "./setup.js";
import { FUNCTIONS_DIRECTORY } from "./variants.js";

const STACK = "sam";
const BUCKET = "sam-artifacts";

it("deploys the service and a function that takes the locks of its prefix, and no others", async () => {
  await upload(BUCKET, {
    "function.zip": readFileSync(join(TEMPLATE_DIRECTORY, "function.zip")),
    "holdfast.template.json": readFileSync(join(TEMPLATE_DIRECTORY, "holdfast.template.json")),
    "checkout.zip": zipOf({ "index.js": readFileSync(join(FUNCTIONS_DIRECTORY, "index.js")) }),
  });
  // `sam deploy` uploads what these two name, and puts the addresses in their places.
  const uploaded = {
    "TemplateURL: node_modules/holdfast/dist/template/holdfast.template.json": `TemplateURL: ${inject("endpoint")}/${BUCKET}/holdfast.template.json`,
    "CodeUri: dist/": `CodeUri: s3://${BUCKET}/checkout.zip`,
    "Handler: checkout.handler": "Handler: index.checkout",
  };
  const page = readFileSync(join(ROOT_DIRECTORY, "docs/without-the-cdk.md"), "utf8");
  const [, template = ""] = /```yaml\n(.*?)```/s.exec(page) ?? [];
  const TemplateBody = Object.entries(uploaded).reduce((text, [find, replace]) => text.replace(find, replace), template);
  expect(TemplateBody).not.toMatch(/dist\//);
  await query("cloudformation", "CreateStack", {
    ...{ StackName: STACK, TemplateBody, "Capabilities.member.1": "CAPABILITY_IAM", "Capabilities.member.2": "CAPABILITY_AUTO_EXPAND" },
    ...{ "Parameters.member.1.ParameterKey": "CodeBucket", "Parameters.member.1.ParameterValue": BUCKET },
    ...{ "Parameters.member.2.ParameterKey": "CodeKey", "Parameters.member.2.ParameterValue": "function.zip" },
  });
  const describeStack = () => query("cloudformation", "DescribeStacks", { StackName: STACK });
  await vi.waitUntil(async () => !(await describeStack()).includes("_IN_PROGRESS"), { timeout: 60_000, interval: 200 });
  const described = await describeStack();
  expect(inXml(described, "StackStatus"), described).toBe("CREATE_COMPLETE");

  const resources = await query("cloudformation", "DescribeStackResources", { StackName: STACK });
  const member = resources.split("<member>").find((one) => inXml(one, "LogicalResourceId") === "Checkout");
  const checkout = inXml(member ?? "", "PhysicalResourceId");
  expect(await invoke(checkout, { key: "ORDER_1" })).toEqual({ token: expect.any(Number) });
  expect(await invoke(checkout, { key: "PAYMENT_1" })).toEqual({ refused: "forbidden" });
});
