/**
 * Turns command-line arguments into an action or an error message, and contains the help text.
 *
 * No argument is ignored: a surplus argument may have been meant to prevent the server from
 * starting.
 */
import { EXIT_MISUSE, EXIT_START_FAILED, PROGRAM_NAME } from "./base/command_output.ts";

export type Command =
  | { readonly kind: "help" | "version" }
  /** `path` is the path of the configuration file. */
  | { readonly kind: "serve" | "check"; readonly path: string }
  | { readonly kind: "verify" | "repair" | "restore"; readonly args: readonly string[] }
  | { readonly kind: "refused"; readonly message: string; readonly exitCode: number };

/** The program that runs the command, and its environment. */
export interface Program {
  readonly version: string;
  /**
   * Whether the program is a single, self-contained file that was not started by a package
   * manager.
   */
  readonly isExecutable: boolean;
  readonly isThere: (path: string) => boolean;
}

const OPTIONS: ReadonlyMap<string, "check" | "help" | "version"> = new Map([
  ["--check", "check"],
  ["--help", "help"],
  ["-h", "help"],
  ["--version", "version"],
  ["-v", "version"],
]);

/** The ways to call the program, each with its description for the help. */
const USES: readonly (readonly [use: string, ...does: string[]])[] = [
  ["config.toml", "start the server with this configuration file"],
  ["--check <file>", "check a configuration file without starting a server"],
  ["verify <data_path>", "check every byte of a data directory without changing it"],
  [
    "repair <data_path>",
    "repair a damaged data directory so that a server can start on",
    "it, and list what is lost; --accept-loss cuts a damaged log",
  ],
  [
    "restore <backup> <data_path>",
    "restore a backup into a data directory, or into a new one; the",
    "old contents are kept in its lost+found. With --to-seq <n> or",
    "--to-timestamp <t>, roll it forward to that moment with the log",
    "there and in --archive <archive_path>",
  ],
  ["--version", "print the version"],
  ["--help", "print this help"],
];

/** The column of the help text at which the descriptions begin. */
const DOES_COLUMN = 34;

export function commandFrom(args: readonly string[], program: Program): Command {
  const [first, ...rest] = args;
  if (first === undefined || first === "") {
    const example = `${programText(program, "config.toml")} config.toml`;
    const message = `Cannot start Tidemark: specify a configuration file, e.g. ${example}`;
    return { kind: "refused", message, exitCode: EXIT_START_FAILED };
  }
  if (first === "verify" || first === "repair" || first === "restore") {
    return { kind: first, args: rest };
  }
  const options = args.filter((arg) => arg.startsWith("-"));
  const words = args.filter((arg) => !arg.startsWith("-"));
  const unknown = options.find((option) => !OPTIONS.has(option));
  if (unknown !== undefined) return misuse(`unknown option ${unknown}`, program);
  const [option, secondOption] = options;
  const kind = option === undefined ? "serve" : (OPTIONS.get(option) ?? "help");
  const [path] = words;
  // An unknown command is reported first, because the surplus arguments may belong to it.
  if (kind === "serve" && path !== undefined && /^\w+$/.test(path) && !program.isThere(path)) {
    return misuse(
      `"${path}" is neither a command nor an existing file; the commands are verify, repair ` +
        "and restore",
      program,
    );
  }
  const wordCount = kind === "serve" || kind === "check" ? 1 : 0;
  const surplus = secondOption ?? words[wordCount];
  if (surplus !== undefined) return misuse(`unexpected argument "${surplus}"`, program);
  if (kind === "help" || kind === "version") return { kind };
  if (path === undefined) return misuse("--check requires a configuration file", program);
  return { kind, path };
}

/**
 * Returns how to call the program on the command line. npm interprets options as its own unless
 * they follow `--`.
 */
export function callOf({ isExecutable }: Program): string {
  return isExecutable ? PROGRAM_NAME : "npm start --";
}

export function helpText(program: Program): string {
  const uses = USES.map(([use, ...does]) => {
    const head = `  ${programText(program, use)} ${use}`;
    const text = does.map((line) => " ".repeat(DOES_COLUMN) + line).join("\n");
    return head.length < DOES_COLUMN ? head + text.slice(head.length) : `${head}\n${text}`;
  });
  const otherwise = program.isExecutable
    ? ""
    : "With Bun: bun run start config.toml, bun run start verify <data_path>. ";
  return `Tidemark ${program.version}: a SQL database server you can subscribe to.

${uses.join("\n")}

${wrapped(
  `${otherwise}verify, repair and restore need the server stopped, and end with 0 when the directory is sound, repaired or restored, 1 when what they read is damaged, 2 when nothing was done. config.toml explains the keys most often set; the view system.settings of a running server lists all.`,
)}
`;
}

/** Returns the command line that calls the program with the given arguments. */
function programText(program: Program, use: string): string {
  return use === "config.toml" && !program.isExecutable ? "npm start" : callOf(program);
}

function misuse(what: string, program: Program): Command {
  const message = `Cannot start Tidemark: ${what}\n\n${helpText(program)}`;
  return { kind: "refused", message: message.trimEnd(), exitCode: EXIT_MISUSE };
}

/** Wraps text into lines of at most a hundred characters. */
function wrapped(text: string): string {
  return text.replaceAll(/(.{1,99})(?: |$)/g, "$1\n").trimEnd();
}
