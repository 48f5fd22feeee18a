/**
 * Shell completion. A library computes the candidates for a position from the program itself, and the shell script asks for them word by
 * word. Keys are asked of the service. The script never evaluates a word of the command line, and words after `--` belong to another
 * command, so pressing TAB runs nothing.
 */
import { RootCommand } from "@bomb.sh/tab";
import type { Command, Option } from "commander";

const BASH = `# Completion of holdfast for bash: source <(holdfast completion bash)
_holdfast() {
  local word rest at IFS=$' \\t\\n'
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    [[ \${COMP_WORDS[at]} == -- ]] || continue
    if declare -F _command_offset > /dev/null; then
      _command_offset $((at + 1))
    else
      local kind=-f
      ((COMP_CWORD == at + 1)) && kind=-c
      compopt -o filenames 2> /dev/null
      IFS=$'\\n' COMPREPLY=($(compgen $kind -- "\${COMP_WORDS[COMP_CWORD]}"))
    fi
    return
  done
  while IFS=$'\\t' read -r word rest; do
    if [[ $word == "\${COMP_WORDS[COMP_CWORD]}"* && $word != :* ]]; then COMPREPLY+=("$word"); fi
  done < <(holdfast complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
}
complete -F _holdfast holdfast
`;

const ZSH = `#compdef holdfast
# Completion of holdfast for zsh: source <(holdfast completion zsh)
_holdfast() {
  local word text at
  local -a found
  for ((at = 2; at < CURRENT; at++)); do
    if [[ \${words[at]} == -- ]]; then
      shift $at words
      ((CURRENT -= at))
      _normal
      return
    fi
  done
  while IFS=$'\\t' read -r word text; do
    [[ $word == :* ]] || found+=("\${word//:/\\\\:}:$text")
  done < <(holdfast complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)
  _describe 'holdfast' found
}
if [[ $funcstack[1] == _holdfast ]]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;

const FISH = `# Completion of holdfast for fish: holdfast completion fish | source
function __holdfast_is_own
  not contains -- -- (commandline -opc)
end
function __holdfast_words
  set -l word (commandline -ct)
  holdfast complete -- (commandline -opc)[2..] "$word" 2> /dev/null | string match -v ':*'
end
function __holdfast_other
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  set -l at (contains -i -- -- $words)
  set -e words[1..$at]
  complete -C (string join ' ' -- (string escape -- $words) "$word")
end
complete -c holdfast -f -n __holdfast_is_own -a '(__holdfast_words)'
complete -c holdfast -f -n 'not __holdfast_is_own' -a '(__holdfast_other)'
`;

/** The shells with their scripts. */
const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;
/** A shell that completes. */
export type Shell = keyof typeof SCRIPTS;

/** Returns the shell's script. */
export function scriptFor(shell: Shell): string {
  return SCRIPTS[shell];
}

/** The names of arguments that are a key or the beginning of one. */
const KEYS: ReadonlySet<string> = new Set(["key", "prefix"]);
/** The kinds of keys. */
export type KeyKind = "locks" | "runs" | "limits";
/** The commands whose keys are not those of locks. */
const KINDS: Readonly<Record<string, KeyKind>> = { once: "runs", runs: "runs", reset: "runs", limit: "limits", limits: "limits" };

/** Returns the keys of a kind that begin with `prefix`. */
export type ListKeys = (of: KeyKind, prefix: string) => Promise<readonly string[]>;

/** Prints the candidates for the last of `words`, one per line, with their meaning after a tab. Without an answer there are no keys. */
export async function complete(program: Command, words: readonly string[], list: ListKeys): Promise<void> {
  const [name = "", word = ""] = [words[0], words.at(-1)];
  const takesKey = program.commands.find((command) => command.name() === name)?.registeredArguments.some((one) => KEYS.has(one.name()));
  const isKey = takesKey === true && words.length > 1 && !word.startsWith("-");
  const keys = isKey ? await list(KINDS[name] ?? "locks", word).catch(() => []) : [];
  const root = new RootCommand();
  for (const command of program.commands) {
    const node = root.command(command.name(), command.description());
    for (const option of [...command.options, ...program.options]) addOption(node, option);
    for (const argument of command.registeredArguments) {
      const choices = KEYS.has(argument.name()) ? keys : (argument.argChoices ?? []);
      node.argument(argument.name(), (add) => choices.forEach((choice) => add(choice, "")), argument.variadic);
    }
  }
  for (const option of program.options) addOption(root, option);
  root.parse([...words]);
}

function addOption(node: ReturnType<RootCommand["command"]>, { long, short, description, required, optional, argChoices }: Option): void {
  const name = long?.replace(/^--/, "") ?? "";
  const alias = short?.replace(/^-/, "");
  if (required || optional) node.option(name, description, (add) => argChoices?.forEach((choice) => add(choice, "")), alias);
  else node.option(name, description, alias);
}
