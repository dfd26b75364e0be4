/**
 * Defines and reads the options of a script. Each script lists the options that it accepts. The
 * list determines the values, the text of `--help` and the refusal of all other options, so that a
 * misspelt option is never ignored.
 *
 *     const options = readOptions({
 *       kills: countOption("how often the server is killed", 100),
 *       long: flag("goes on until it is stopped"),
 *     });
 *     options.kills; // a number
 *
 * Reading the arguments also makes Ctrl-C end the script in order: its exit handlers run, for
 * example to remove temporary files and stop servers.
 */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { relative } from "node:path";
import { nearestOf } from "./nearest.ts";
import { ROOT, TASKS } from "./tasks.ts";

/** An option that a script accepts, and how its value is parsed. */
export interface Option<Value> {
  /**
   * The notation for the option's value in the help text, for example "<count>"; empty for a flag,
   * which has no value.
   */
  readonly form: string;
  readonly about: string;
  /** The value to use if the command line does not contain the option. */
  readonly absent: Value;
  /**
   * The help text's description of what happens without the option; empty if there is nothing to
   * say.
   */
  readonly absentShown: string;
  /** Parses the value of the option. Returns undefined if the value is invalid. */
  readonly read: (text: string) => Value | undefined;
}

export type OptionForms = Readonly<Record<string, Option<unknown>>>;

export type OptionValues<Forms extends OptionForms> = {
  readonly [Name in keyof Forms]: Forms[Name] extends Option<infer Value> ? Value : never;
};

/** The positional arguments that a script accepts. */
export interface Words {
  /** The notation for the positional arguments in the help text, for example "<file> …". */
  readonly form: string;
  readonly about: string;
  readonly countMin: number;
  readonly countMax?: number;
  /** Whether options that the script does not know are passed on to a program that it runs. */
  readonly arePassedOn?: boolean;
}

/** Defines an option without a value. */
export function flag(about: string): Option<boolean> {
  return { form: "", about, absent: false, absentShown: "", read: () => true };
}

/** Defines an option whose value is a non-negative integer. */
export function countOption(about: string, absent: number): Option<number> {
  return {
    form: "<count>",
    about,
    absent,
    absentShown: absent.toLocaleString("en-US"),
    read: wholeNumber,
  };
}

/**
 * Defines an option like {@linkcode countOption}, but without a fixed default. If the command line
 * omits it, its value is undefined.
 *
 * @param absentShown The help text's description of what happens without the option.
 */
export function optionalCount(about: string, absentShown = ""): Option<number | undefined> {
  return { form: "<count>", about, absent: undefined, absentShown, read: wholeNumber };
}

/**
 * Defines an option whose value is a comma-separated list of integers. Without the option, the
 * value is undefined.
 */
export function optionalCounts(about: string): Option<readonly number[] | undefined> {
  return {
    form: "<count>,…",
    about,
    absent: undefined,
    absentShown: "",
    read(given) {
      const counts = given.split(",").map(wholeNumber);
      return counts.every((count) => count !== undefined) ? counts : undefined;
    },
  };
}

/** Defines an option for a random seed. Without the option, each run uses a different seed. */
export function seedOption(about = "repeats the run that printed this seed"): Option<number> {
  const absent = Date.now() % 1_000_000;
  return {
    form: "<seed>",
    about,
    absent,
    absentShown: "a different one each time",
    read: wholeNumber,
  };
}

/** Defines an option whose value is any string. */
export function textOption(form: string, about: string, absent: string): Option<string> {
  return { form, about, absent, absentShown: absent, read: (given) => given };
}

/** Defines an option like {@linkcode textOption}. Without the option, the value is undefined. */
export function optionalText(form: string, about: string): Option<string | undefined> {
  return { form, about, absent: undefined, absentShown: "", read: (given) => given };
}

/** Defines an option whose value is one of the given words. */
export function oneOf<const Word extends string>(
  words: readonly Word[],
  about: string,
  absent: Word,
): Option<Word> {
  return { ...optionalOneOf(words, about), absent, absentShown: absent };
}

/** Defines an option like {@linkcode oneOf}. Without the option, the value is undefined. */
export function optionalOneOf<const Word extends string>(
  words: readonly Word[],
  about: string,
): Option<Word | undefined> {
  return {
    form: words.join("|"),
    about,
    absent: undefined,
    absentShown: "",
    read: (given) => words.find((word) => word === given),
  };
}

/**
 * Defines an option whose value is a comma-separated list of the given words. Without the option,
 * the value contains all of them.
 */
export function someOf<const Word extends string>(
  words: readonly Word[],
  about: string,
): Option<readonly Word[]> {
  return {
    form: words.join(","),
    about,
    absent: words,
    absentShown: "all",
    read(given) {
      const chosen = given.split(",").map((each) => words.find((word) => word === each));
      return chosen.every((word) => word !== undefined) ? chosen : undefined;
    },
  };
}

/**
 * Reads the command line of a script that takes no positional arguments. Ends the script under the
 * same conditions as {@linkcode readArguments}.
 */
export function readOptions<Forms extends OptionForms>(forms: Forms): OptionValues<Forms> {
  return readArguments(forms, undefined).options;
}

/**
 * Reads the command line of a script. Ends the script with exit code 0 after `--help`, and with
 * exit code 2 and a one-line message if an argument is invalid.
 */
export function readArguments<Forms extends OptionForms>(
  forms: Forms,
  words: Words | undefined,
): { options: OptionValues<Forms>; words: readonly string[] } {
  endInOrder();
  const given = process.argv.slice(2);
  if (given.some((word) => word === "--help" || word === "-h")) printHelp(forms, words);
  const values = new Map<string, unknown>();
  const others: string[] = [];
  for (let index = 0; index < given.length; index += 1) {
    const word = given[index] ?? "";
    const name = word.replace(/^--/, "");
    const form = word.startsWith("--") && Object.hasOwn(forms, name) ? forms[name] : undefined;
    if (form === undefined) {
      if (word.startsWith("-") && words?.arePassedOn !== true) refuseOption(word, forms);
      if (words === undefined) refuse(`Cannot read "${word}": this script takes only options`);
      others.push(word);
    } else if (form.form === "") {
      values.set(name, true);
    } else {
      index += 1;
      values.set(name, valueOf(name, form, given[index]));
    }
  }
  checkCount(others, words);
  const read = Object.entries(forms).map(([name, { absent }]) => [
    name,
    values.get(name) ?? absent,
  ]);
  return { options: Object.fromEntries(read) as OptionValues<Forms>, words: others };
}

/** Returns whether a word is one of the given words, and narrows its type. */
export function isOneOf<Word extends string>(words: readonly Word[], word: string): word is Word {
  return words.some((each) => each === word);
}

/** Ends the script with exit code 2 and a one-line message, because its arguments are invalid. */
export function refuse(message: string): never {
  process.stderr.write(`${message}${message.endsWith("?") ? "" : "."} For more, use --help.\n`);
  process.exit(2);
}

function wholeNumber(given: string): number | undefined {
  return /^\d+$/.test(given) ? Number(given) : undefined;
}

/** Descriptions of valid values for error messages, keyed by the notation of an option's value. */
const WANTED: Readonly<Record<string, string>> = {
  "<count>": "a whole number",
  "<seed>": "a whole number",
  "<count>,…": "whole numbers, separated by commas",
};

function valueOf(
  name: string,
  { form, read }: Option<unknown>,
  given: string | undefined,
): unknown {
  if (given === undefined) refuse(`Cannot read --${name}: it needs a value, ${form}`);
  const value = read(given);
  if (value === undefined) {
    const wanted = WANTED[form] ?? form;
    refuse(`Cannot read --${name} "${given}": it must be ${wanted}`);
  }
  return value;
}

function refuseOption(word: string, forms: OptionForms): never {
  const names = Object.keys(forms).map((name) => `--${name}`);
  const nearest = nearestOf(word, names);
  if (names.length === 0) refuse(`Cannot read option "${word}": the only option is --help`);
  if (nearest !== undefined) refuse(`Cannot read option "${word}": did you mean ${nearest}?`);
  const verb = names.length === 1 ? "is" : "are";
  refuse(`Cannot read option "${word}": there ${verb} ${names.join(", ")}`);
}

function checkCount(given: readonly string[], words: Words | undefined): void {
  if (words === undefined) return;
  if (given.length < words.countMin) refuse(`Cannot start the script: specify ${words.about}`);
  const excess = given[words.countMax ?? Number.POSITIVE_INFINITY];
  if (excess !== undefined) refuse(`Cannot read "${excess}": unexpected argument`);
}

function printHelp(forms: OptionForms, words: Words | undefined): never {
  const header = /\/\*\*\n?([\s\S]*?)\*\//.exec(readFileSync(Bun.main, "utf8"))?.[1] ?? "";
  const about = header.replaceAll(/^ ?\* ?/gm, "").trim();
  process.stdout.write(`${about}\n\n${helpText(commandOf(Bun.main), forms, words)}`);
  process.exit(0);
}

/** Returns the command that starts a script, as users type it. */
function commandOf(path: string): string {
  const file = relative(ROOT, path);
  const task = TASKS.find((each) => each.file === file);
  return task === undefined ? `bun ${file}` : `bun task ${task.name}`;
}

/** Returns the text of `--help`: the usage, and a line for each option. */
export function helpText(command: string, forms: OptionForms, words: Words | undefined): string {
  const rows: [string, string][] = Object.entries(forms).map(([name, option]) => {
    const shown = option.absentShown === "" ? "" : ` (${option.absentShown})`;
    return [`--${name} ${option.form}`.trimEnd(), `${option.about}${shown}`];
  });
  if (words !== undefined) rows.unshift([words.form, words.about]);
  rows.push(["--help", "prints this"]);
  const short = rows.map(([left]) => left.length).filter((length) => length <= LEFT_COLUMNS_MAX);
  const width = Math.max(...short);
  const lines = rows.map(([left, right]) =>
    left.length <= LEFT_COLUMNS_MAX
      ? `  ${left.padEnd(width)}  ${right}`
      : `  ${left}\n  ${" ".repeat(width)}  ${right}`,
  );
  const usage = [command, ...(rows.length > 1 ? ["[options]"] : []), words?.form ?? ""];
  return `usage: ${usage.join(" ").trimEnd()}\n\n${lines.join("\n")}\n`;
}

/**
 * The maximum width of the column of options in the help text. The description of a longer option
 * begins on the next line.
 */
const LEFT_COLUMNS_MAX = 30;

/**
 * Makes a signal end the script through `process.exit`, so that exit handlers run. A script that
 * handles signals differently sets its own handler first.
 */
function endInOrder(): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    if (process.listenerCount(signal) > 0) continue;
    process.on(signal, () => {
      // If the script has set its own handler for the signal in the meantime, only that handler
      // counts.
      if (process.listenerCount(signal) > 1) return;
      process.exit(128 + constants.signals[signal]);
    });
  }
}
