/**
 * Bundles a server in which a test can inject faults. In each stage of a request, the bundle has a
 * call inserted before one line. The server's own code does not refer to this file.
 *
 * An inserted call throws if a test has requested its fault (`fault_point.ts`). If the line of a
 * stage is missing or occurs twice, no bundle is made: the code has changed, and the entry in
 * STAGES must be updated.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bundleChangedServer, SOURCES } from "./changed_server.ts";

/**
 * The stages of a request, each with its file below `src/` and the line before which the call is
 * inserted.
 */
const STAGES = {
  body: ["server/http/sql_request.ts", "const { sqlUtf8, value } = parseSqlBody(text, body);"],
  normalise: ["sql/parse/text/normalize.ts", "return new Normalizer(text).run();"],
  "parse, short": [
    "sql/parse/parser.ts",
    "const tokens = tokenize(text, normalized.start, normalized.end);",
  ],
  "parse, long": ["sql/parse/parser.ts", "const listed = tokenizeWithLists(text, utf8);"],
  bind: ["sql/prepare/prepared.ts", "yield* bindLongValues(node, statement);"],
  plan: ["sql/plan/planner.ts", "const readers = new ColumnReaders(neededColumns(select));"],
  compile: ["sql/execute/build/build.ts", "const build = buildNode(node, use);"],
  build: ["sql/execute/operators/scan.ts", "const hasOverlay = hasStaged(options);"],
  evaluate: ["sql/execute/operators/filter.ts", "const { effort } = this.#context;"],
  "time slice": [
    "sql/execute/context/operator.ts",
    "const sliceEndMs = clock.monotonicMs() + sliceMs;",
  ],
  aggregate: ["sql/execute/operators/aggregate.ts", "this.#add(batch);"],
  subquery: ["sql/execute/subquery/subqueries.ts", "const batch = operator.next();"],
  recursion: ["sql/execute/operators/recursion.ts", "const fresh = this.#fresh(batch);"],
  cells: ["sql/result/result.ts", "const start = rows.length;"],
  json: ["server/http/result_format.ts", 'let entries = "";'],
  ndjson: ["server/http/result_format.ts", "const { asUser, schema } = head;"],
  csv: [
    "server/http/result_format.ts",
    'return `${schema.map(({ name }) => csvField(name)).join(",")}\\r\\n`;',
  ],
  pieces: [
    "sql/result/row_text.ts",
    "const written = JSON.stringify(rows.slice(at, at + together));",
  ],
  push: ["sql/request/answer_stream.ts", "this.#parts.push(part);"],
  change: ["sql/execute/change/row_changes.ts", "const last = writes.at(-1);"],
  insert: [
    "sql/execute/change/row_changes.ts",
    'const write: TableWrite = { tableId: table.tableId, owner, operation: "insert", rows };',
  ],
  "insert, columns": [
    "sql/execute/change/row_changes.ts",
    "if (batch.rowCount === 0) return { commit: undefined, seqs: NO_SEQS };",
  ],
  "long change": [
    "sql/execute/change/change_writer.ts",
    "while (!staged.settle()) await context.pause();",
  ],
  transaction: ["sql/request/request_transaction.ts", "const rows = [...transaction.writes()];"],
  "long transaction": [
    "sql/request/request_transaction.ts",
    "while (!staged.settle()) await pause();",
  ],
  upload: [
    "sql/files/uploads.ts",
    "this.#placed = this.#cellsOf(target, rows).map(({ columnId, key, upload }) => ({",
  ],
  "upload, listed": ["sql/files/uploads.ts", "this.#deps?.blobs.publish("],
  download: ["sql/files/file_access.ts", "return /^\\d{1,16}/.exec(storedName)?.[0];"],
  key: ["sql/request/idempotency.ts", "const row = this.#recordOf(owner, key);"],
  record: ["sql/request/idempotency.ts", "const text = JSON.stringify(answer);"],
  audit: [
    "sql/own_tables/audit_log.ts",
    "return this.#store.apply({ writes: [this.#write(event)], usesReserve: true }).lastSeq;",
  ],
  "reader, share": ["sql/readers/reader.ts", "const shares = sharing.share("],
  "reader, sent": ["sql/readers/reader.ts", "this.#port?.post({"],
  "reader, tables": ["sql/readers/query_reader.ts", "const ledger = new JobLedger(job, clock);"],
  "reader, plan": ["sql/readers/query_reader.ts", "const { rowCounts } = source;"],
  "reader, rows": [
    "sql/readers/query_reader.ts",
    "const { batch, bytes, moved } = portableBatch(sent, columnCount);",
  ],
  "reader, taken": ["sql/readers/running_job.ts", "this.#pendingKib += message.kib;"],
  "reader, ended": [
    "sql/readers/running_job.ts",
    'this.#ended = totals === undefined ? "refused" : "read";',
  ],
  "live plan": ["sql/prepare/live_planner.ts", "refuseAggregates(bound, node);"],
  "live batch": [
    "live/subscription/subscription.ts",
    "const { rows, lastSeq, isLast, messages } = step;",
  ],
  "live change": ["live/change_feed/change_feed.ts", "const { filter, program, sources } = group;"],
  "live tick": ["live/change_feed/change_feed.ts", "const upTo = this.#store.visibleSeq;"],
  authenticate: ["server/connections/connection.ts", "const fields = readAuthenticate(decoded);"],
  unsubscribe: [
    "server/connections/connection.ts",
    "this.#subscriptions.close(readUnsubscribe(decoded));",
  ],
  "event stream": ["server/routes/live.ts", "const spec = specFrom(exchange, config);"],
  events: [
    "server/connections/event_stream.ts",
    "this.#lastTakenMs = this.#options.clock.monotonicMs();",
  ],
  timer: [
    "server/connections/connection.ts",
    "if (this.#intake?.isIdle(nowMs) === true) this.#intake = undefined;",
  ],
  flush: ["storage/background/flush_table.ts", "const segmentId = manifest.nextSegmentId();"],
  merge: ["storage/background/merge_segments.ts", "const segmentId = manifest.nextSegmentId();"],
  backup: ["backup/backup.ts", "const { blobs, catalog, clock, store } = source;"],
  restore: [
    "backup/restore.ts",
    "requireFreeSpace(disk, paths.root, { action, bytes: totalBytes, minFreeBytes });",
  ],
  erasure: ["sql/utility/erasure.ts", "const files = await removeFiles(deps, owner);"],
  upkeep: [
    "storage/background/merge.ts",
    "const expiredSeq = table.discardableSeq(this.#options.seqs);",
  ],
  "free space": ["storage/local_store.ts", "this.#space.look();"],
  "flush, published": [
    "storage/background/flush_table.ts",
    "const segment = new OpenSegment(entry, files);",
  ],
  "merge, published": [
    "storage/background/merge_segments.ts",
    "const merged = added.map((entry) => new OpenSegment(entry, tools.files));",
  ],
  commit: [
    "storage/commit/commit.ts",
    "const group = this.groups.applied(commitLog.end(), lastSeq);",
  ],
  "staged commit": [
    "storage/commit/commit.ts",
    "const number = this.#commitLog.append(prepared, { catalogSeq, firstSeq });",
  ],
} as const satisfies Readonly<Record<string, readonly [file: string, line: string]>>;

/** A stage of the server in which a fault can be injected. */
export type FaultStage = keyof typeof STAGES;

/** The module whose function the inserted calls run. */
const FAULT_POINT = join(import.meta.dir, "fault_point.ts");

const STAGES_BY_PATH = Map.groupBy(Object.entries(STAGES), ([, [file]]) => join(SOURCES, file));

/**
 * Bundles a server with a call inserted in each stage.
 *
 * @param folder The absolute path of the folder for the bundle.
 * @returns The command that starts the server.
 * @throws If a line in STAGES is missing or occurs twice.
 */
export function bundleWithFaults(folder: string): Promise<readonly string[]> {
  return bundleChangedServer(folder, { first: FAULT_POINT, sourceOf: sourceWithFaults });
}

/** Lists the errors that prevent a bundle with faults from being made. */
export function staleFaults(): readonly string[] {
  return [...STAGES_BY_PATH.keys()].flatMap((path) => {
    try {
      sourceWithFaults(path);
      return [];
    } catch (error) {
      // The caller reports the error.
      return [String(error)];
    }
  });
}

/**
 * Returns the source of a file below `src/`, with a call inserted before each of its lines in
 * STAGES.
 *
 * @throws {Error} If a line of the file in STAGES is missing or occurs twice.
 */
function sourceWithFaults(path: string): string {
  const faults = STAGES_BY_PATH.get(path);
  const source = readFileSync(path, "utf8");
  return faults === undefined ? source : withFaults(source, faults);
}

function withFaults(
  source: string,
  faults: readonly (readonly [stage: string, place: readonly [string, string]])[],
): string {
  let text = source;
  for (const [stage, [file, line]] of faults) {
    const parts = text.split("\n");
    const at = parts.findIndex((each) => each.trim() === line);
    const isOnce = at >= 0 && at === parts.findLastIndex((each) => each.trim() === line);
    if (!isOnce) throw new Error(`Cannot inject into ${file}: "${line}" must occur exactly once`);
    parts[at] = `meetInjectedFault(${JSON.stringify(stage)}); ${parts[at] ?? ""}`;
    text = parts.join("\n");
  }
  return text;
}
