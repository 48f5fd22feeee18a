/** The bans of eslint.config.js, checked regardless of comments that disable rules. Without type information, which is slow. */
import { ESLint, Linter } from "eslint";
import { parser } from "typescript-eslint";
import { type SourceText, ROOT } from "./tree.js";

const linter = new Linter({ configType: "flat" });
const eslint = new ESLint({ cwd: ROOT });

/** Returns the violations of the bans that apply to the file's path. */
export async function banned({ path, text }: SourceText): Promise<readonly string[]> {
  const { rules } = (await eslint.calculateConfigForFile(path)) as { rules: Linter.RulesRecord };
  const bans = Object.fromEntries(Object.entries(rules).filter(([rule]) => rule.startsWith("no-restricted-")));
  const config: Linter.Config = { files: ["**/*.ts"], languageOptions: { parser }, rules: bans };
  return linter
    .verify(text, [config], { filename: path, allowInlineConfig: false })
    .map(({ line, message }) => `${path}:${line} ${message}`);
}
