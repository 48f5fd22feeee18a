/**
 * The function that serves the console's files in an account, and nothing else: it has no data, no right and no setting. The page itself
 * asks the API for data, with its user's token.
 */
import { type Assets, PAGE_HEADERS } from "./files.js";

/** Returns the handler of the gateway's requests that serves these files. The path ends with a file's name, or with `/console`. */
export function serveFiles(assets: Assets) {
  return ({ pathParameters }: { readonly pathParameters?: { readonly file?: string } | null }) => {
    // API Gateway leaves the member out if a path has none. Other gateways send null.
    const { file = "page" } = pathParameters ?? {};
    const asset = Object.hasOwn(assets, file) ? assets[file] : undefined;
    const headers = { ...PAGE_HEADERS, "content-type": asset?.type ?? "text/plain; charset=utf-8" };
    return Promise.resolve({ statusCode: asset ? 200 : 404, headers, body: asset?.body ?? "The console has no such file" });
  };
}
