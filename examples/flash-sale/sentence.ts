/** Sentences in a terminal: a line ends between words. Pure. */
import { stripVTControlCharacters } from "node:util";

/** Returns the words in lines of at most `width` characters, with `gap` between two words. A word that is longer has a line of its own. */
export function wrapped(words: readonly string[], width: number, gap = " "): readonly string[] {
  const lines: string[] = [];
  for (const word of words) {
    const longer = `${lines.at(-1)}${gap}${word}`;
    if (lines.length > 0 && longer.length <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Returns the sentence after `mark`, in as many lines as it needs: the further ones begin below its first word. `styled` colours each. */
export function linesAfter(mark: string, sentence: string, width: number, styled: (text: string) => string = String): readonly string[] {
  const hang = stripVTControlCharacters(mark).length;
  return wrapped(sentence.split(" "), width - hang).map((line, at) => (at === 0 ? mark : " ".repeat(hang)) + styled(line));
}
