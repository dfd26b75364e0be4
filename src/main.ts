/**
 * The program: arguments → configuration → database → server → signals.
 *
 * A bug that leaves shared state in doubt, or whose error is not caught, is logged and stops the
 * process. Recovery from the log makes this safe. Any other bug ends only the request,
 * subscription or connection in which it occurred (`base/bugs.ts`).
 *
 *     verify, repair, restore  commands of `maintenance/`, with exit codes of their own
 *
 *     exit 0   asked to stop, and stopped; --help, --version, a valid --check
 *     exit 1   could not start, or would not after a --check: the reason is on stderr
 *     exit 2   the arguments make no command
 *     exit 70  a bug, the disk failed, or told twice to stop: start again to recover; or the result
 *              of a command could not be printed
 */
import { tmpdir, totalmem } from "node:os";
import { keptSecret, missingSecretText } from "./auth/mod.ts";
import { bringInThread, requireArchive } from "./backup/mod.ts";
import { StateInDoubtError } from "./base/bugs.ts";
import { bunDisk } from "./base/bun_disk.ts";
import { systemClock } from "./base/clock.ts";
import { EXIT_FATAL, EXIT_START_FAILED, textWithHint } from "./base/command_output.ts";
import { descriptorGauge } from "./base/descriptors.ts";
import { unreadableText } from "./base/disk_reasons.ts";
import { DatabaseError, DiskError, isExpected, stackOf } from "./base/errors.ts";
import { settleGlobals } from "./base/globals.ts";
import { isLoopbackHost } from "./base/ip_address.ts";
import { type Log, type LogFields, silentLog } from "./base/log.ts";
import { LogWriter } from "./base/log_writer.ts";
import { findMemoryLimit } from "./base/memory_limit.ts";
import { pageRelease, releaseProgramPages } from "./base/program_pages.ts";
import { systemRandom } from "./base/random.ts";
import { receivedBytes } from "./base/received_bytes.ts";
import { tellServiceManager } from "./base/service_manager.ts";
import { loadClient } from "./client_assets.ts";
import { callOf, commandFrom, helpText, type Program } from "./command_line.ts";
import { type Config, ConfigError, type ParsedConfig, parseConfig } from "./config/mod.ts";
import { type Database, openDatabase } from "./database.ts";
import { heldLogBytes, segmentThreads, serverMemory } from "./layer_limits.ts";
import { listenFailure, tlsFailure } from "./listen_failure.ts";
import { runMaintenance, runRestore } from "./maintenance/mod.ts";
import { readerThreads } from "./reader_threads.ts";
import { RereadSettings } from "./reread_settings.ts";
import { type RunningServer, startServer } from "./server/mod.ts";
import { SegmentThreads } from "./threads/mod.ts";
import { loadUi } from "./ui_assets.ts";
import { BUILD_DATE, IS_EXECUTABLE, VERSION } from "./version.ts";

const PROGRAM: Program = {
  version: VERSION,
  isExecutable: IS_EXECUTABLE,
  isThere: (path) => bunDisk.exists(path),
};

/**
 * The limit is detected only once, because the amount of free address space changes while the
 * server runs.
 */
const MEMORY = findMemoryLimit({ disk: bunDisk, machineBytes: totalmem() });

/**
 * How long after becoming ready the server releases the memory that only startup used, in
 * milliseconds.
 */
const STARTED_MS = 2000;

function fail(message: string): never {
  tell(message);
  process.exit(EXIT_START_FAILED);
}

function readText(path: string): string {
  return new TextDecoder().decode(bunDisk.readFile(path));
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

/**
 * Watches the output of a command. The program that reads the output may exit early, as a pager
 * does. A command whose result could not be printed must not count as successful.
 */
function watchOutput(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return;
    tell(`Cannot print the result: ${error.message}`);
    process.on("exit", () => {
      process.exitCode = EXIT_FATAL;
    });
  });
  process.stderr.on("error", () => undefined);
}

function configAt(path: string): ParsedConfig {
  const surroundings = { env: process.env, readFile: readText, memory: MEMORY };
  return parseConfig(readText(path), path, surroundings);
}

/**
 * Reads the configuration file and the environment.
 * @param cannot The action that an invalid configuration prevents, as a phrase that begins with
 *   "Cannot".
 */
function readConfig(path: string, cannot: string): ParsedConfig {
  try {
    return configAt(path);
  } catch (error) {
    if (error instanceof ConfigError) return fail(`${cannot}:\n${error.message}`);
    if (error instanceof DiskError) {
      return fail(`${cannot}: the configuration file ${error.path} ${unreadableText(error.code)}`);
    }
    throw error;
  }
}

/** Returns messages about settings that are valid but worth logging. */
function notesOn({ auth, performance, storage }: Config): readonly string[] {
  const bytes = performance.memory_bytes;
  const origin = bytes === MEMORY.bytes ? MEMORY.source : "performance.memory_bytes";
  const notes = [`the process may use ${bytes} bytes of memory, according to ${origin}`];
  if (auth.jwt_secret === undefined) notes.push(missingSecretText(bunDisk, storage.data_path));
  return notes;
}

async function open(config: Config, log: LogWriter): Promise<Database> {
  const dataPath = config.storage.data_path;
  try {
    const given = config.auth.jwt_secret;
    const database = await openDatabase(config, {
      disk: bunDisk,
      clock: systemClock,
      random: systemRandom,
      log,
      jwtSecret: () =>
        given === undefined
          ? keptSecret({ disk: bunDisk, dataPath, random: systemRandom })
          : new TextEncoder().encode(given),
      version: VERSION,
      segmentWork: new SegmentThreads(systemClock, segmentThreads(config)),
      readers: { open: readerThreads },
      bringInThread: (work) => bringInThread(systemClock, work),
      onFatal: (cause) => {
        stopAtOnce(
          log,
          "stopping because the log or the catalog on disk failed; start the server again to " +
            "recover",
          cause,
        );
      },
    });
    database.watchMemory();
    return database;
  } catch (thrown) {
    // If closing the open parts failed as well, the first failure is the cause.
    const error = thrown instanceof SuppressedError ? thrown.suppressed : thrown;
    if (!isExpected(error)) stopByBug(log, error);
    log.flush();
    return fail(openFailure(dataPath, error));
  }
}

function openFailure(dataPath: string, error: Error): string {
  return `Cannot start Tidemark on ${dataPath}: ${textWithHint(error, callOf(PROGRAM))}`;
}

function stopAtOnce(log: LogWriter, what: string, cause: unknown): never {
  log.error(what, { cause: stackOf(cause) });
  log.flush();
  process.exit(EXIT_FATAL);
}

function stopByBug(log: LogWriter, error: unknown): never {
  const bug = error instanceof StateInDoubtError ? error.cause : error;
  stopAtOnce(log, "stopping because of a bug", bug);
}

/** Handles a bug that reached the server: either contains it or stops the process. */
function containBug(
  { database, log }: { database: Database; log: LogWriter },
  error: unknown,
  { fields, what }: { what: string; fields: LogFields | undefined },
): void {
  if (error instanceof StateInDoubtError) stopByBug(log, error);
  database.bugs.contain(error, what, fields);
}

function announce(
  { auth, server: { ui_enabled: hasUi }, storage }: Config,
  {
    database,
    server,
    warnings,
  }: { database: Database; server: RunningServer; warnings: readonly string[] },
): void {
  const { needs_setup: needsSetup } = database.auth.status();
  say(`Tidemark ${VERSION}`);
  say(`  data       ${storage.data_path}`);
  say(`  listening  ${server.url}`);
  if (hasUi) say(`  admin UI   ${server.url}/ui`);
  if (needsSetup) {
    say(`  next       first-time setup:${hasUi ? " open the admin UI, or" : ""}`);
    say(`             curl ${server.url}/v1/api/auth/setup -H 'Content-Type: application/json' \\`);
    const word = `"<at least ${auth.min_password_length}>"`;
    const { setupCode } = database.auth;
    const code = setupCode === undefined ? "" : `,"setup_code":"${setupCode}"`;
    say(`               -d '{"user":"ada","password":${word},"root_password":${word}${code}}'`);
    if (setupCode !== undefined) say(`  setup code ${setupCode}`);
  } else {
    const page = hasUi ? `at ${server.url}/ui, or ` : "by ";
    say(`  next       log in ${page}POST ${server.url}/v1/api/auth/login`);
  }
  say(
    `  first SQL  POST ${server.url}/v1/api/sql  {"sql":"SELECT 1"}  with Authorization: Bearer <token>`,
  );
  for (const warning of warnings) say(`  warning    ${warning}`);
}

async function serve(path: string): Promise<void> {
  // The program that reads the console may exit early, as a pager does. This does not stop the
  // server, because the log is also written to files.
  process.stdout.on("error", () => undefined);
  process.stderr.on("error", () => undefined);
  // Prevents SIGHUP from ending the process before settings can be reread.
  let hangUp: (() => void) | undefined;
  process.on("SIGHUP", () => hangUp?.());
  settleGlobals();
  const { config, warnings } = readConfig(path, "Cannot start Tidemark");
  const { logging } = config;
  const log = new LogWriter({
    clock: systemClock,
    level: logging.level,
    format: logging.format,
    toConsole: logging.log_to_console,
    path: logging.logs_path,
    fileBytesMax: logging.max_file_bytes,
    filesMax: logging.max_files,
  });
  process.on("uncaughtException", (error) => stopByBug(log, error));
  process.on("unhandledRejection", (error) => stopByBug(log, error));
  for (const signal of ["SIGUSR1", "SIGUSR2"] as const) ignoreSignal(signal, log);
  for (const warning of warnings) log.warn(warning);
  for (const note of notesOn(config)) log.info(note);
  const database = await open(config, log);
  const server = startOrFail(config, { database, log });
  database.connections = server.connections;
  database.metrics = () => server.metrics();
  database.serverMemory = () => server.memory();
  let isStopping = false;
  const stop = (signal: string): void => {
    // A second signal stops the process immediately. The commit log makes this safe.
    if (isStopping) {
      log.warn("stopped before everything could be closed", { signal });
      log.flush();
      process.exit(EXIT_FATAL);
    }
    isStopping = true;
    log.info("stopping", { signal });
    notifyManager(["STOPPING=1"], log);
    shutDown({ database, log, server }).catch((error: unknown) => {
      stopAtOnce(log, "could not stop cleanly", error);
    });
  };
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));
  const reread = new RereadSettings(config, {
    disk: bunDisk,
    log,
    server,
    read: () => configAt(path).config,
  });
  hangUp = () => {
    if (isStopping) return;
    try {
      database.config = reread.run();
    } catch (error) {
      stopAtOnce(log, "cannot resume listening, so the server is stopping; start it again", error);
    }
  };
  // The announcement comes last, because a program that reads it may stop the server immediately.
  announce(config, { database, server, warnings });
  log.info("started", {
    version: VERSION,
    url: server.url,
    local: isLoopbackHost(config.server.host),
  });
  notifyManager(["READY=1", `STATUS=listening on ${server.url}`], log);
  systemClock.after(STARTED_MS, settlePages);
}

/**
 * Sends notifications to the service manager. A failure does not stop the server, because the
 * service manager has its own timeout.
 */
function notifyManager(lines: readonly string[], log: Log): void {
  const reason = tellServiceManager(lines);
  if (reason !== undefined)
    log.warn("cannot notify the service manager", { message: lines.join(" "), reason });
}

function settlePages(): void {
  const release = pageRelease();
  if (release === undefined) return;
  releaseProgramPages({ disk: bunDisk, path: process.execPath, release });
}

/** Ignores a signal that would otherwise end the process. */
function ignoreSignal(signal: "SIGUSR1" | "SIGUSR2", log: Log): void {
  let isTold = false;
  process.on(signal, () => {
    if (!isTold) log.info("ignored a signal that has no effect here", { signal });
    isTold = true;
  });
}

function startOrFail(
  config: Config,
  { database, log }: { database: Database; log: LogWriter },
): RunningServer {
  const uiAssets = config.server.ui_enabled ? loadUi(log) : undefined;
  try {
    return startServer({
      config,
      memory: serverMemory(config),
      auth: database.auth,
      sql: database.sql,
      live: database.live,
      topics: database.topicConsumers,
      webhookFigures: () => database.webhooks.figures(),
      files: database.files,
      exports: database.exports,
      uiAssets,
      clientAssets: loadClient(log),
      clock: systemClock,
      random: systemRandom,
      log,
      version: VERSION,
      buildDate: BUILD_DATE,
      onBug: (error, what, fields) => containBug({ database, log }, error, { what, fields }),
      bugCount: () => database.bugs.count,
      archiveLag: () => database.archiveLag(),
      isReadOnly: () => database.isReadOnly(),
      storageState: () => database.storageState(),
      memoryParts: () => database.memoryParts(),
      memoryGivenBack: () => database.memoryGivenBack(),
      readerCounts: () => database.readerCounts(),
      descriptors: descriptorGauge(bunDisk),
      receivedBytes: receivedBytes(),
    });
  } catch (error) {
    log.flush();
    // The server rejects some configurations before it listens.
    if (error instanceof DatabaseError)
      return fail(`Cannot start Tidemark: ${textWithHint(error)}`);
    return fail(`Cannot start Tidemark: ${listenFailure(error, config.server, bunDisk)}`);
  }
}

async function shutDown({
  database,
  log,
  server,
}: {
  database: Database;
  log: LogWriter;
  server: RunningServer;
}): Promise<void> {
  await server.stop();
  await database.close();
  log.info("stopped");
  log.flush();
  process.exit(0);
}

function check(path: string): void {
  const { config, warnings } = readConfig(path, "Cannot check the configuration");
  for (const note of notesOn(config)) say(`note: ${note}`);
  for (const warning of warnings) say(`warning: ${warning}`);
  const failures = [archiveFailure(config.storage), listenFailureOf(config.server)];
  const failure = failures.filter((text) => text !== undefined).join("\n");
  if (failure !== "") fail(failure);
  say(`${path} is valid`);
}

/** Returns why the archive directory is unusable, in the same words as at startup. */
function archiveFailure({
  archive_path: archivePath,
  data_path: dataPath,
}: Config["storage"]): string | undefined {
  if (archivePath === undefined) return undefined;
  try {
    requireArchive(bunDisk, archivePath);
    return undefined;
  } catch (error) {
    if (error instanceof DatabaseError) return openFailure(dataPath, error);
    throw error;
  }
}

/**
 * Returns why the server could not listen, in the same words as at startup. Only a real startup
 * shows whether the port is free.
 */
function listenFailureOf(server: Config["server"]): string | undefined {
  const failure = tlsFailure(server, bunDisk);
  return failure === undefined ? undefined : `Cannot start Tidemark: ${failure}`;
}

/** Runs a command to completion; a bug in it has its own exit code. */
async function runCommand(command: string, run: () => number | Promise<number>): Promise<void> {
  try {
    process.exitCode = await run();
  } catch (error) {
    tell(`Cannot ${command}: stopped by a bug\n${stackOf(error)}`);
    process.exitCode = EXIT_FATAL;
  }
}

async function main(args: readonly string[]): Promise<void> {
  const commandParts = {
    disk: bunDisk,
    clock: systemClock,
    random: systemRandom,
    program: callOf(PROGRAM),
    say,
    tell,
  };
  const command = commandFrom(args, PROGRAM);
  if (command.kind !== "serve") watchOutput();
  switch (command.kind) {
    case "refused":
      tell(command.message);
      process.exitCode = command.exitCode;
      break;
    case "help":
      process.stdout.write(helpText(PROGRAM));
      break;
    case "version":
      say(VERSION);
      break;
    case "check":
      check(command.path);
      break;
    case "verify":
    case "repair": {
      const what = command.kind;
      await runCommand(what, () =>
        runMaintenance(what, command.args, { ...commandParts, temporary: tmpdir() }),
      );
      break;
    }
    case "restore":
      await runCommand(command.kind, () =>
        runRestore(command.args, {
          ...commandParts,
          log: silentLog,
          heldBytesMax: heldLogBytes(MEMORY.bytes),
        }),
      );
      break;
    case "serve":
      await serve(command.path);
      break;
  }
}

// Only the server's own user may access its files, because they contain keys, rows and users'
// files.
process.umask(0o077);
await main(process.argv.slice(2));
