/**
 * The function that serves the console's files in an account, and nothing else: it has no data, no right and no setting. The page itself
 * asks the API for data, with its user's token.
 */
import type { Assets } from "./files.js";
import { PAGE_HEADERS } from "./files.js";

/** The part of the gateway's event that is read: the file after `/console/`, if one is asked for. */
export interface FileEvent {
  readonly pathParameters?: { readonly file?: string };
}

/** An answer to the gateway. */
export interface FileAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Returns the handler that serves these files. */
export function serveFiles(assets: Assets): (event: FileEvent) => Promise<FileAnswer> {
  return ({ pathParameters: { file = "page" } = {} }) => {
    const asset = Object.hasOwn(assets, file) ? assets[file] : undefined;
    const headers = { ...PAGE_HEADERS, "content-type": asset?.type ?? "text/plain; charset=utf-8" };
    return Promise.resolve({ statusCode: asset ? 200 : 404, headers, body: asset?.body ?? "The console has no such file" });
  };
}
