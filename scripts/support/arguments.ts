/**
 * The options of a script, `--name value` or `--name` alone, or the words that it takes. What a
 * script does not know ends it with one line, so that a misspelt option is not a run of something
 * else. `--help` prints the header of the script, which is where its use is written.
 */
import { readFileSync } from "node:fs";

export interface ScriptOptions {
  /** The value of an option, or undefined when it was not given. */
  text(name: string): string | undefined;
  /** The value of an option as a whole number; ends the script when it is none. */
  count(name: string, absent: number): number;
  has(name: string): boolean;
}

/**
 * Reads the command line; ends the script after `--help`, and with 2 when a word cannot be read.
 *
 * @param valued Options with a value. @param flags Options without.
 */
export function readOptions(valued: readonly string[], flags: readonly string[]): ScriptOptions {
  const given = new Map<string, string>();
  const words = process.argv.slice(2);
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? "";
    const name = word.replace(/^--/, "");
    if (asksForHelp(word)) printHelp();
    if (flags.includes(name)) {
      given.set(name, "");
    } else if (valued.includes(name) && words[index + 1] !== undefined) {
      index += 1;
      given.set(name, words[index] ?? "");
    } else {
      const known = [...valued.map((n) => `--${n} <value>`), ...flags.map((n) => `--${n}`)];
      const there = known.length === 0 ? "is none but --help" : `are ${known.join(", ")}`;
      refuse(`Cannot read option "${word}": there ${there}`);
    }
  }
  return {
    text: (name) => given.get(name),
    has: (name) => given.has(name),
    count(name, absent) {
      const text = given.get(name);
      if (text === undefined) return absent;
      if (!/^\d+$/.test(text)) refuse(`Cannot read --${name} "${text}": not a whole number`);
      return Number(text);
    },
  };
}

/**
 * Reads the words of a script that has no options; ends it as {@linkcode readOptions} does, and
 * when there is none.
 *
 * @param wanted What a word names.
 */
export function readWords(wanted: string): readonly string[] {
  const words = process.argv.slice(2);
  if (words.some(asksForHelp)) printHelp();
  const option = words.find((word) => word.startsWith("-"));
  if (option !== undefined) refuse(`Cannot read option "${option}": there is none but --help`);
  if (words.length === 0) refuse(`Cannot begin: name ${wanted}`);
  return words;
}

/** Whether a word is one of those that an option takes. */
export function isOneOf<Word extends string>(words: readonly Word[], word: string): word is Word {
  return words.some((each) => each === word);
}

function asksForHelp(word: string): boolean {
  return word === "--help" || word === "-h";
}

function printHelp(): never {
  const header = /\/\*\*\n([\s\S]*?)\n \*\//.exec(readFileSync(Bun.main, "utf8"))?.[1] ?? "";
  process.stdout.write(`${header.replaceAll(/^ \* ?/gm, "")}\n`);
  process.exit(0);
}

function refuse(message: string): never {
  process.stderr.write(`${message}. --help says more.\n`);
  process.exit(2);
}
