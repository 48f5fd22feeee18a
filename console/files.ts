/** The files of the console's page by their names, and the headers with which they are sent, on this machine and in an account. */

/** The code and the style of the page. */
export interface Bundled {
  readonly script: string;
  readonly style: string;
}

/** A file with its content type. */
export interface Asset {
  readonly type: string;
  readonly body: string;
}

/** The files by the last part of their path; `page` is the page itself. */
export type Assets = Readonly<Record<string, Asset>>;

/** The names of the made files, beside `index.html`. */
export const MADE = { script: "console.js", style: "console.css" } as const;

/** Returns the files by their texts. */
export function assetsOf({ page, icon, script, style }: Bundled & { readonly page: string; readonly icon: string }): Assets {
  return {
    page: { type: "text/html; charset=utf-8", body: page },
    "icon.svg": { type: "image/svg+xml", body: icon },
    [MADE.script]: { type: "text/javascript; charset=utf-8", body: script },
    [MADE.style]: { type: "text/css; charset=utf-8", body: style },
  };
}

/** The page loads only its own files, sends only to its own origin, and is embedded in nothing. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};
