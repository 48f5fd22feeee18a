/** The files of the console's page by their names. */

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
