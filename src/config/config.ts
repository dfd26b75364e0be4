/**
 * Reads the configuration from a TOML file and then the environment, checks it as a whole, and
 * freezes it.
 *
 * Nothing is guessed or ignored: unknown keys, wrong types and values out of range are refused.
 * All faults are reported together, each with its position. The keys are defined in `keys.ts`.
 *
 *     file ────parse──check──┐
 *                            ├──► rules between keys ──► Config and warnings
 *     environment ────check──┘         any fault: ConfigError with all of them
 */
import { parse, TomlError } from "smol-toml";
import { type AuthSettings, type PasswordPolicy, passwordFault, secretFault } from "../auth/mod.ts";
import type { MemoryLimit } from "../base/memory_limit.ts";
import { type Environment, environmentValues, type ReadFile } from "./environment_variables.ts";
import {
  type Config,
  type ConfigKey,
  isToCome,
  KEY_SYNONYMS,
  KEYS,
  KEYS_WITHOUT_EFFECT,
  keyAt,
  PROVIDER_KEY_NAMES,
  providerKeys,
  providerOfSection,
  providerSection,
  SECTION_SYNONYMS,
  SECTIONS,
} from "./keys.ts";
import { defaultOf, MEMORY_KEY, memoryFault, memoryWarnings, PLENTY, shareText } from "./memory.ts";
import { nearestKey } from "./names.ts";
import { type KeyPosition, keyPositions, pathOf } from "./positions.ts";
import { checkedFromToml } from "./values.ts";

/** Reports every fault of a configuration, one per line. */
export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join("\n"));
    this.name = "ConfigError";
    this.faults = faults;
  }
}

/** A valid configuration, and the warnings about it. */
export interface ParsedConfig {
  readonly config: Config;
  readonly warnings: readonly string[];
}

/** The inputs to the configuration other than its file. */
export interface Surroundings {
  readonly env?: Environment;
  /** Reads the file named by a `…_FILE` variable. */
  readonly readFile?: ReadFile;
  /** The memory that the process may use; unlimited if absent. */
  readonly memory?: MemoryLimit;
}

/** A row of `system.settings`. */
export interface Setting {
  readonly name: string;
  readonly value: string;
  readonly defaultValue: string;
  readonly source: "default" | "file" | "environment";
  readonly category: string;
  readonly description: string;
}

/**
 * Parses and checks a configuration.
 *
 * @param fileName The file name used in messages.
 * @throws {ConfigError}
 */
export function parseConfig(
  text: string,
  fileName: string,
  { env = {}, memory = PLENTY, readFile = refuseFile }: Surroundings,
): ParsedConfig {
  const file = new FileReader(text, fileName);
  const environment = environmentValues(env, readFile);
  const places = new Map<string, string>();
  const sources = new Map<string, "file" | "environment">();
  const values = new Map<string, unknown>();
  for (const [path, { value, place }] of file.values) {
    values.set(path, value);
    places.set(path, place);
    sources.set(path, "file");
  }
  for (const [path, { value, variable }] of environment.values) {
    values.set(path, value);
    places.set(path, `environment: ${variable}`);
    sources.set(path, "environment");
  }
  const memoryBytes = Number(values.get(MEMORY_KEY) ?? 0) || memory.bytes;
  values.set(MEMORY_KEY, memoryBytes);
  const config = configFrom(values, { memoryBytes, sources });
  const placeOf = (path: string): string => places.get(path) ?? fileName;
  const between = faultsBetween(config, { memory, placeOf });
  const faults = [...file.faults, ...environment.faults, ...between.faults];
  if (faults.length > 0) throw new ConfigError(faults);
  return { config, warnings: [...file.warnings, ...environment.warnings, ...between.warnings] };
}

/** Returns every key with its value, for `system.settings`. Secrets are hidden. */
export function settingsOf(config: Config): readonly Setting[] {
  return keysOf(config).map(({ path, section, name, rule }) => {
    const value = sectionOf(config, section)?.[name];
    const isHidden = rule.isSecret === true && value !== undefined;
    return {
      name: path,
      value: isHidden ? "***" : settingText(value),
      defaultValue: settingText(defaultOf(rule, config.performance.memory_bytes)),
      source: config.sources.get(path) ?? "default",
      category: section,
      description: `${rule.description}${shareText(rule)}${rule.isUnavailable === true ? "; not available yet" : ""}`,
    };
  });
}

/** Lists the keys of the fixed sections, followed by those of the configured providers. */
function keysOf({ oidc }: Config): readonly ConfigKey[] {
  return [...KEYS.values(), ...Object.keys(oidc.providers).flatMap(providerKeys)];
}

/** Returns the paths of the keys whose values differ. */
export function changedKeys(before: Config, after: Config): readonly string[] {
  const keys = new Map([...keysOf(before), ...keysOf(after)].map((key) => [key.path, key]));
  return [...keys.values()]
    .filter(({ name, section }) => {
      const [old, now] = [before, after].map((config) => sectionOf(config, section)?.[name]);
      return settingText(old) !== settingText(now);
    })
    .map(({ path }) => path);
}

/** Returns the auth settings. `jwtSecret` is either the configured secret or the stored one. */
export function authSettingsFrom(
  { auth, limits, oidc, security, server }: Config,
  jwtSecret: Uint8Array,
): AuthSettings {
  const isBehindProxy = server.public_origin !== undefined || security.trusted_proxies.length > 0;
  return {
    jwtSecret,
    accessLifetimeSeconds: Math.round(auth.jwt_expiry_hours * 3600),
    refreshLifetimeSeconds: Math.round(auth.refresh_expiry_hours * 3600),
    allowRemoteSetup: auth.allow_remote_setup,
    rootPassword: auth.root_password,
    passwordPolicy: passwordPolicyFrom(auth),
    attemptsPerSecond: limits.auth_requests_per_sec_per_ip,
    loginFailuresMax: limits.login_max_failures,
    lockoutSeconds: limits.lockout_secs,
    hasSetupCode: auth.setup_code ?? isBehindProxy,
    accounts: {
      signUp: auth.signup,
      hasGuests: auth.guests,
      guestDays: auth.guest_days,
      mayChangePassword: auth.own_password,
      mayDeleteAccount: auth.own_deletion,
      hasPasswordReset: auth.password_reset,
      isEmailLogin: auth.email_login,
      signUpsPerHour: limits.signups_per_hour,
    },
    oidc: oidcSettingsFrom(oidc, auth.jwt_trusted_issuers),
  };
}

function oidcSettingsFrom(
  oidc: Config["oidc"],
  trustedIssuers: readonly string[],
): AuthSettings["oidc"] {
  return {
    providers: Object.entries(oidc.providers).map(([name, provider]) => ({
      name,
      issuer: provider.issuer ?? "",
      clientId: provider.client_id,
      clientSecret: provider.client_secret,
      audience: provider.audience ?? provider.client_id,
      userClaim: provider.user_claim,
      label: provider.label ?? name,
      scopes: provider.scopes,
      claims: provider.claims,
    })),
    trustedIssuers,
    autoProvisions: oidc.auto_provision,
    defaultRole: oidc.default_role,
    mayLink: oidc.linking,
    keysFreshSeconds: oidc.jwks_cache_secs,
  };
}

/** Reads a configuration file. Collects its values, keyed by path, and its faults. */
class FileReader {
  readonly values = new Map<string, { value: unknown; place: string }>();
  readonly faults: string[] = [];
  readonly warnings: string[] = [];
  readonly #fileName: string;
  readonly #positions: ReadonlyMap<string, KeyPosition>;

  constructor(text: string, fileName: string) {
    this.#fileName = fileName;
    let table: Record<string, unknown>;
    try {
      table = parse(text, { unsafeKeyBehaviour: "throw" });
    } catch (error) {
      if (!(error instanceof TomlError)) throw error;
      const [reason = ""] = error.message.replace("Invalid TOML document: ", "").split("\n");
      throw new ConfigError([`${fileName}:${error.line}:${error.column}: ${reason}`]);
    }
    this.#positions = keyPositions(text);
    for (const [name, value] of Object.entries(table)) this.#readSection([name], value);
    this.faults.sort((left, right) => lineOf(left) - lineOf(right));
  }

  #readSection(written: readonly string[], table: unknown): void {
    const name = pathOf(written);
    const section = SECTION_SYNONYMS.get(name) ?? name;
    if (!SECTIONS.includes(section)) {
      this.#fault(written, isTable(table) ? unknownSection(section) : unknownTopKey(section));
    } else if (isTable(table)) {
      for (const [key, value] of Object.entries(table)) {
        const isSection = SECTIONS.includes(`${section}.${key}`);
        if (`${section}.${key}` === "oidc.providers") this.#readProviders([...written, key], value);
        else if (isSection) this.#readSection([...written, key], value);
        else this.#readKey([...written, key], section, value);
      }
    } else {
      this.#fault(written, `[${section}] must be a section, but is set as a key`);
    }
  }

  #readProviders(written: readonly string[], providers: unknown): void {
    if (!isTable(providers)) {
      this.#fault(written, "[oidc.providers] must be a section, but is set as a key");
      return;
    }
    for (const [name, table] of Object.entries(providers)) {
      const place = [...written, name];
      const section = providerSection(name);
      if (section === undefined) {
        const fault = `the provider name ${JSON.stringify(name)} is not valid: it must have 1 to 32 characters from a-z, 0-9 and -`;
        this.#fault(place, fault);
      } else if (isTable(table)) {
        for (const [key, value] of Object.entries(table)) {
          this.#readKey([...place, key], section, value);
        }
      } else {
        this.#fault(place, `[${section}] must be a section, but is set as a key`);
      }
    }
  }

  #readKey(written: readonly string[], section: string, value: unknown): void {
    const name = written.at(-1) ?? "";
    const given = `${section}.${name}`;
    const path = KEY_SYNONYMS.get(given) ?? given;
    const key = keyAt(path);
    if (key === undefined) {
      if (KEYS_WITHOUT_EFFECT.has(path)) {
        this.warnings.push(`${this.#place(written)}: ${path} has no effect; remove it`);
      } else {
        this.#fault(
          written,
          isToCome(path) ? `${path} is not available yet; remove it` : unknownKey(given),
        );
      }
      return;
    }
    const checked = checkedFromToml(key.rule, value);
    if ("fault" in checked) this.#fault(written, `${given} ${checked.fault}`);
    else if (this.values.has(path))
      this.#fault(written, `${given} sets ${path}, which is already set; remove one of the two`);
    else this.values.set(path, { value: checked.value, place: this.#place(written) });
  }

  #fault(written: readonly string[], message: string): void {
    this.faults.push(`${this.#place(written)}: ${message}`);
  }

  #place(written: readonly string[]): string {
    const position = this.#positions.get(pathOf(written));
    if (position === undefined) return this.#fileName;
    return `${this.#fileName}:${position.line}:${position.column}`;
  }
}

/** Arranges values in the shape of Config, filling in the defaults of all other keys. */
function configFrom(
  values: ReadonlyMap<string, unknown>,
  {
    memoryBytes,
    sources,
  }: { memoryBytes: number; sources: ReadonlyMap<string, "file" | "environment"> },
): Config {
  const sections = new Map<string, Record<string, unknown>>(SECTIONS.map((name) => [name, {}]));
  for (const { path, section, name, rule } of KEYS.values()) {
    const target = sections.get(section) ?? {};
    target[name] = values.has(path) ? values.get(path) : defaultOf(rule, memoryBytes);
  }
  const config: Record<string, unknown> = { sources };
  sections.set("oidc", { ...sections.get("oidc"), providers: providersFrom(values) });
  for (const [name, section] of sections) {
    const [outer = "", inner] = name.split(".");
    Object.freeze(section);
    if (inner === undefined) config[name] = section;
    else config[outer] = Object.freeze({ ...sections.get(outer), [inner]: section });
  }
  // The cast is safe: every key of every section is present, and its value satisfies the key's
  // rule.
  return Object.freeze(config) as unknown as Config;
}

function providersFrom(values: ReadonlyMap<string, unknown>): Readonly<Record<string, unknown>> {
  const names = [...values.keys()].flatMap(
    (path) => providerOfSection(path.slice(0, path.lastIndexOf("."))) ?? [],
  );
  const providers = [...new Set(names)].map((name) => {
    const entries = providerKeys(name).map(({ path, name: key, rule }) => [
      key,
      values.has(path) ? values.get(path) : rule.initial,
    ]);
    return [name, Object.freeze(Object.fromEntries(entries))] as const;
  });
  return Object.freeze(Object.fromEntries(providers));
}

interface Findings {
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
}

/** Checks rules that involve more than one key. */
function faultsBetween(
  config: Config,
  { memory, placeOf }: { memory: MemoryLimit; placeOf: (path: string) => string },
): Findings {
  const faults: string[] = [];
  const warnings: string[] = [];
  const { server, storage, auth, cluster } = config;
  const { cors } = config.security;
  const demand = (isMet: boolean, path: string, message: string): void => {
    if (!isMet) faults.push(`${placeOf(path)}: ${path} ${message}`);
  };
  demand(
    (server.tls_cert === undefined) === (server.tls_key === undefined),
    server.tls_key === undefined ? "server.tls_cert" : "server.tls_key",
    "is set alone, but server.tls_cert and server.tls_key must either both be set or both be omitted",
  );
  checkSizes(config, demand);
  demand(
    !cors.allow_credentials || !cors.allowed_origins.includes("*"),
    "security.cors.allow_credentials",
    'is true, but must be false if security.cors.allowed_origins contains "*"',
  );
  demand(
    cluster.node_id < 2 ** cluster.node_bits,
    "cluster.node_id",
    `is ${cluster.node_id}, but must be less than 2 to the power of cluster.node_bits (${2 ** cluster.node_bits})`,
  );
  checkNotices(auth, { demand, warnings, placeOf });
  checkProviders(config, { demand, warnings, placeOf });
  const weak = rootPasswordFault(auth);
  demand(weak === undefined, "auth.root_password", `is too weak: ${weak}`);
  const secret = secretFault(auth.jwt_secret, server.host);
  if (secret !== undefined) {
    const message = `${placeOf("auth.jwt_secret")}: ${secret.message}`;
    (secret.isFatal ? faults : warnings).push(message);
  }
  const tooLittle = memoryFault(config, memory);
  if (tooLittle !== undefined) faults.push(`${placeOf(MEMORY_KEY)}: ${tooLittle}`);
  for (const warning of memoryWarnings(config, memory)) {
    warnings.push(`${placeOf(MEMORY_KEY)}: ${warning}`);
  }
  if (storage.durability === "relaxed") {
    warnings.push(
      `${placeOf("storage.durability")}: storage.durability is "relaxed": a crash may lose acknowledged writes`,
    );
  }
  return { faults, warnings };
}

interface FindingParts {
  readonly demand: (isMet: boolean, path: string, message: string) => void;
  readonly placeOf: (path: string) => string;
  readonly warnings: string[];
}

/** Checks the numbers whose range depends on the value of another key. */
function checkSizes(config: Config, demand: FindingParts["demand"]): void {
  const { limits, storage, websocket } = config;
  for (const [path, value, other, floor] of floorsOf(config)) {
    // The fault is reported for a key that was set, because a key with a default value has no
    // position in the file.
    if (config.sources.has(path) || !config.sources.has(other)) {
      demand(
        value >= floor,
        path,
        `is ${value}, but must be at least ${floor}, the value of ${other}`,
      );
    } else {
      demand(
        value >= floor,
        other,
        `is ${floor}, but must be at most ${value}, the value of ${path}`,
      );
    }
  }
  demand(
    websocket.idle_timeout_secs > websocket.ping_interval_secs,
    "websocket.idle_timeout_secs",
    `is ${websocket.idle_timeout_secs}, but must be greater than websocket.ping_interval_secs (${websocket.ping_interval_secs})`,
  );
  demand(
    storage.wal_max_bytes >= 4 * storage.wal_segment_bytes,
    "storage.wal_max_bytes",
    `is ${storage.wal_max_bytes}, but must be at least 4 times storage.wal_segment_bytes (${storage.wal_segment_bytes})`,
  );
  demand(
    storage.wal_segment_bytes >= 2 * limits.max_row_bytes,
    "storage.wal_segment_bytes",
    `is ${storage.wal_segment_bytes}, but must be at least twice limits.max_row_bytes (${limits.max_row_bytes})`,
  );
}

/** Checks the provider sections. */
function checkProviders({ auth, oidc }: Config, { demand, placeOf, warnings }: FindingParts): void {
  const nameOfIssuer = new Map<string, string>();
  for (const [name, provider] of Object.entries(oidc.providers)) {
    const { audience, client_id: clientId, client_secret: secret, issuer, scopes } = provider;
    const section = `oidc.providers.${name}`;
    demand(
      issuer !== undefined,
      `${section}.issuer`,
      "is missing, but every provider needs an issuer",
    );
    const other = nameOfIssuer.get(issuer ?? "");
    const isTwice =
      `is the same as the issuer of oidc.providers.${other}, but each provider must have its ` +
      "own issuer";
    demand(other === undefined, `${section}.issuer`, isTwice);
    if (issuer !== undefined) nameOfIssuer.set(issuer, name);
    demand(
      secret === undefined || clientId !== undefined,
      `${section}.client_secret`,
      `is set, but ${section}.client_id is not; set both`,
    );
    demand(
      scopes.includes("openid"),
      `${section}.scopes`,
      `is ${JSON.stringify(scopes)}, but must contain "openid"`,
    );
    if (audience === undefined && clientId === undefined) {
      const key = `${section}.audience`;
      warnings.push(
        `${placeOf(`${section}.issuer`)}: ${key} is not set, so tokens that this issuer issued for other applications are accepted, too`,
      );
    }
  }
  if (auth.jwt_trusted_issuers.length > 0) {
    warnings.push(
      `${placeOf("auth.jwt_trusted_issuers")}: tokens that these issuers issued for other applications are accepted, too; to check the audience, define each issuer as a provider in oidc.providers`,
    );
  }
}

/** Checks that links can be delivered, provided that an enabled feature sends links. */
function checkNotices(auth: Config["auth"], { demand, placeOf, warnings }: FindingParts): void {
  const isDelivered = auth.notice_url !== undefined || auth.notices_in_log;
  for (const [path, isOn] of [
    ["auth.password_reset", auth.password_reset],
    ["auth.email_login", auth.email_login],
  ] as const) {
    demand(
      !isOn || isDelivered,
      path,
      "is true, but links cannot be sent: set auth.notice_url or, for development, auth.notices_in_log",
    );
  }
  if (auth.notice_url !== undefined && auth.notice_secret === undefined) {
    warnings.push(
      `${placeOf("auth.notice_url")}: auth.notice_secret is not set, so the receiver at auth.notice_url cannot verify that requests come from this server`,
    );
  }
}

/**
 * Lists the keys whose values must not be below the value of another key. Each entry contains the
 * paths and values of both keys.
 */
function floorsOf({
  auth,
  files,
  websocket,
}: Config): readonly (readonly [string, number, string, number])[] {
  return [
    [
      "auth.refresh_expiry_hours",
      auth.refresh_expiry_hours,
      "auth.jwt_expiry_hours",
      auth.jwt_expiry_hours,
    ],
    [
      "auth.max_password_length",
      auth.max_password_length,
      "auth.min_password_length",
      auth.min_password_length,
    ],
    [
      "files.max_request_bytes",
      files.max_request_bytes,
      "files.max_size_bytes",
      files.max_size_bytes,
    ],
    [
      "websocket.max_batch_size",
      websocket.max_batch_size,
      "websocket.default_batch_size",
      websocket.default_batch_size,
    ],
  ];
}

function rootPasswordFault(auth: Config["auth"]): string | undefined {
  if (auth.root_password === undefined) return undefined;
  return passwordFault(auth.root_password, { userId: "root", policy: passwordPolicyFrom(auth) });
}

function passwordPolicyFrom(auth: Config["auth"]): PasswordPolicy {
  return {
    lengthMin: auth.min_password_length,
    lengthMax: auth.max_password_length,
    isComplex: auth.enforce_password_complexity,
  };
}

function unknownSection(name: string): string {
  const nearest = nearestKey(name, [...SECTIONS, ...SECTION_SYNONYMS.keys()]);
  return `unknown section [${name}]${nearest === undefined ? "" : `; did you mean [${nearest}]?`}`;
}

function unknownTopKey(name: string): string {
  const key = [...KEYS.values()].find((candidate) => candidate.name === name);
  const hint = key === undefined ? "" : `; did you mean "${name}" in [${key.section}]?`;
  return `unknown key "${name}" outside any section${hint}`;
}

function unknownKey(path: string): string {
  const section = path.slice(0, path.lastIndexOf("."));
  const name = path.slice(section.length + 1);
  const keys = [...KEYS.values()];
  const elsewhere = keys.find((key) => key.name === name);
  const names =
    providerOfSection(section) === undefined
      ? keys.filter((key) => key.section === section).map((key) => key.name)
      : PROVIDER_KEY_NAMES;
  if (elsewhere !== undefined) {
    return `unknown key "${name}" in [${section}]; did you mean "${name}" in [${elsewhere.section}]?`;
  }
  const nearest = nearestKey(name, names);
  const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  return `unknown key "${name}" in [${section}]${hint}`;
}

function isTable(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date)
  );
}

function sectionOf(config: Config, name: string): Readonly<Record<string, unknown>> | undefined {
  const provider = providerOfSection(name);
  if (provider !== undefined) return config.oidc.providers[provider];
  const section = name === "security.cors" ? config.security.cors : config[name as "server"];
  return section;
}

function settingText(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function lineOf(fault: string): number {
  return Number(/:(\d+):\d+: /.exec(fault)?.[1] ?? 0);
}

function refuseFile(path: string): string {
  throw new Error(`${path}: configuration files cannot be read here`);
}
