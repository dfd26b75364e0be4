/**
 * Reads the environment: `TIDEMARK_<SECTION>_<KEY>`, the short names, and either kind of name with
 * the suffix `_FILE`. The value of a `_FILE` variable is the path of a file that contains the
 * actual value.
 *
 * Short names take precedence over long ones. An empty variable counts as unset. A variable that
 * names an empty file also counts as unset, but causes a warning, because it was probably meant to
 * set a value. A variable that matches no key also causes a warning, not an error, because it may
 * be meant for another program.
 *
 * The provider `my-idp` has the variables `TIDEMARK_OIDC_PROVIDERS_MY_IDP_<KEY>`.
 */
import {
  isToCome,
  KEY_SYNONYMS,
  KEYS,
  KEYS_WITHOUT_EFFECT,
  keyAt,
  PROVIDER_KEY_NAMES,
  providerSection,
  SECTION_SYNONYMS,
} from "./keys.ts";
import { nearestKey } from "./names.ts";
import { checkedFromText } from "./values.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads a text file.
 * @throws {Error} If it cannot be read.
 */
export type ReadFile = (path: string) => string;

export interface EnvironmentValues {
  /** The values of the environment variables, keyed by the path of their configuration key. */
  readonly values: ReadonlyMap<string, { readonly value: unknown; readonly variable: string }>;
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
}

const PREFIX = "TIDEMARK_";

export function environmentValues(env: Environment, readFile: ReadFile): EnvironmentValues {
  const values = new Map<string, { value: unknown; variable: string; isShort: boolean }>();
  const faults: string[] = [];
  const warnings: string[] = [];
  for (const variable of Object.keys(env).toSorted()) {
    if (!variable.startsWith(PREFIX) || env[variable] === "") continue;
    const own = namedBy(variable);
    const named = own ?? namedBy(variable.replace(/_FILE$/, ""));
    if (named === undefined) {
      const unknown = unknownVariable(variable);
      (unknown.isFault ? faults : warnings).push(unknown.message);
      continue;
    }
    const key = keyAt(named.path);
    if (key === undefined) {
      warnings.push(`environment: ${variable} has no effect; unset it`);
      continue;
    }
    const isFile = own === undefined;
    const text = textOf(env, { variable, isFile, readFile });
    if (typeof text === "object") faults.push(text.fault);
    if (isFile && text === "") {
      warnings.push(`environment: ${variable} is ignored: the file ${env[variable]} is empty`);
    }
    if (typeof text !== "string" || text === "") continue;
    const checked = checkedFromText(key.rule, text);
    if ("fault" in checked) faults.push(`environment: ${variable} ${checked.fault}`);
    else if (named.isShort || values.get(key.path)?.isShort !== true) {
      values.set(key.path, { value: checked.value, variable, isShort: named.isShort });
    }
  }
  return { values, faults, warnings };
}

/** Maps the name of every known variable to the path of its key. */
const VARIABLES: ReadonlyMap<string, { readonly path: string; readonly isShort: boolean }> =
  (() => {
    const variables = new Map<string, { path: string; isShort: boolean }>();
    const addLong = (spelling: string, path: string): void => {
      const words = spelling.replaceAll(".", "_").toUpperCase();
      variables.set(`${PREFIX}${words}`, { path, isShort: false });
    };
    for (const path of KEYS_WITHOUT_EFFECT) addLong(path, path);
    for (const [synonym, path] of KEY_SYNONYMS) addLong(synonym, path);
    for (const { path, section, name, rule } of KEYS.values()) {
      addLong(path, path);
      for (const [synonym, of] of SECTION_SYNONYMS) {
        if (of === section) addLong(`${synonym}.${name}`, path);
      }
      if (rule.environment !== undefined) variables.set(rule.environment, { path, isShort: true });
    }
    return variables;
  })();

const PROVIDER_VARIABLE = new RegExp(
  `^${PREFIX}OIDC_PROVIDERS_([A-Z0-9_]+)_(${PROVIDER_KEY_NAMES.map((name) => name.toUpperCase()).join("|")})$`,
);

/** Returns the key that a variable sets; undefined if it does not set one. */
function namedBy(
  variable: string,
): { readonly path: string; readonly isShort: boolean } | undefined {
  const [, name, key] = PROVIDER_VARIABLE.exec(variable) ?? [];
  if (name === undefined || key === undefined) return VARIABLES.get(variable);
  const section = providerSection(name.toLowerCase().replaceAll("_", "-"));
  if (section === undefined) return undefined;
  return { path: `${section}.${key.toLowerCase()}`, isShort: false };
}

function textOf(
  env: Environment,
  { variable, isFile, readFile }: { variable: string; isFile: boolean; readFile: ReadFile },
): string | undefined | { fault: string } {
  const text = env[variable];
  if (!isFile || text === undefined) return text;
  const plain = variable.replace(/_FILE$/, "");
  if ((env[plain] ?? "") !== "") {
    return { fault: `environment: ${variable} and ${plain} are both set; unset one of them` };
  }
  try {
    // The last line break is removed, because editors and `echo` add one that is not part of the
    // value.
    return readFile(text).replace(/\r?\n$/, "");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { fault: `environment: cannot read the file named by ${variable}: ${reason}` };
  }
}

function unknownVariable(variable: string): { isFault: boolean; message: string } {
  const path = variable
    .slice(PREFIX.length)
    .toLowerCase()
    .replace(/^cluster_/, "cluster.");
  if (isToCome(path)) {
    return { isFault: true, message: `environment: ${variable} is not available yet; unset it` };
  }
  const nearest = nearestKey(variable, VARIABLES.keys());
  const hint = nearest === undefined ? "" : `; did you mean ${nearest}?`;
  return { isFault: false, message: `environment: unknown variable ${variable}${hint}` };
}
