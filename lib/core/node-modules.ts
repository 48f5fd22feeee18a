/** Node's own modules, for code that does without them elsewhere. An import of them would keep a bundle from other runtimes. */

type LoadModule = typeof process.getBuiltinModule;

interface Globals {
  readonly navigator?: { readonly userAgent?: string };
  readonly process?: { readonly getBuiltinModule?: LoadModule };
}

/** Returns what loads Node's own modules; undefined outside Node: other runtimes have modules of the same names that differ. */
export function nodeModules(): LoadModule | undefined {
  const { navigator, process } = globalThis as Globals;
  // Node 20 has no `navigator`.
  return (navigator?.userAgent?.startsWith("Node.js") ?? true) ? process?.getBuiltinModule : undefined;
}
