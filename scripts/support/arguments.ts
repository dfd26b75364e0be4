/**
 * The options of a script: `--name value` or `--name` alone. What a script does not know is an
 * error, so that a misspelt option is not a run of something else.
 */

export interface ScriptOptions {
  /** The value of an option, or undefined when it was not given. */
  text(name: string): string | undefined;
  /** The value of an option as a whole number. @throws When it is none. */
  count(name: string, absent: number): number;
  has(name: string): boolean;
}

/**
 * Reads the command line.
 *
 * @param valued Options with a value. @param flags Options without.
 */
export function readOptions(valued: readonly string[], flags: readonly string[]): ScriptOptions {
  const given = new Map<string, string>();
  const words = process.argv.slice(2);
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? "";
    const name = word.replace(/^--/, "");
    if (flags.includes(name)) {
      given.set(name, "");
    } else if (valued.includes(name) && words[index + 1] !== undefined) {
      index += 1;
      given.set(name, words[index] ?? "");
    } else {
      const known = [...valued.map((n) => `--${n} <value>`), ...flags.map((n) => `--${n}`)];
      throw new Error(`Cannot read option "${word}": there are ${known.join(", ")}`);
    }
  }
  return {
    text: (name) => given.get(name),
    has: (name) => given.has(name),
    count(name, absent) {
      const text = given.get(name);
      if (text === undefined) return absent;
      if (!/^\d+$/.test(text)) throw new Error(`Cannot read --${name} "${text}": not a number`);
      return Number(text);
    },
  };
}
