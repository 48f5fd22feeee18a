/** The name of a diagram in Mermaid: its accessible title, which is also what a reader without pictures is told. */

/** Returns the diagram's title, and the name of its files. @throws Error if it has no `accTitle`. */
export function diagramName(source: string): { readonly title: string; readonly file: string } {
  const [, title] = /^\s*accTitle: (.+)$/m.exec(source) ?? [];
  if (title === undefined) throw new Error(`a diagram has no accTitle:\n${source}`);
  return { title, file: title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-") };
}
