/**
 * Plants bugs in a server that a test has started for itself. The server process preloads this
 * file, which inserts a call before one line of each stage of a request. The server's own code
 * knows nothing of it.
 *
 * The call throws once, in the stage that the file of PLANTED_BUG names, after the stage has been
 * passed the number of times that the file gives. If a line is missing or occurs twice, the start
 * fails: the stage has moved, and its plant has to follow.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { AssertionError } from "../../src/base/assert.ts";

/** The contents of the control file. */
export interface PlantedBug {
  readonly stage: string;
  readonly kind: BugKind;
  /** How often the stage is passed before the bug. */
  readonly skip: number;
}

export const BUG_KINDS = ["assertion", "type", "range", "stack", "value"] as const;

export type BugKind = (typeof BUG_KINDS)[number];

/** The file below `src/`, and the line before which the call is inserted. */
const STAGES: Readonly<Record<string, readonly [file: string, line: string]>> = {
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
  build: [
    "sql/execute/operators/scan.ts",
    "const hasOverlay = run.staged?.hasStaged(table.tableId) === true;",
  ],
  evaluate: ["sql/execute/operators/filter.ts", "const { effort } = this.#run;"],
  turn: ["sql/execute/run/operator.ts", "const turnEndMs = clock.monotonicMs() + turnMs;"],
  aggregate: ["sql/execute/operators/aggregate.ts", "this.#add(batch);"],
  subquery: ["sql/execute/subquery/subqueries.ts", "const batch = operator.next();"],
  recursion: ["sql/execute/operators/recursion.ts", "const fresh = this.#fresh(batch);"],
  cells: ["sql/common/result.ts", "const start = rows.length;"],
  json: ["server/http/result_format.ts", 'let entries = "";'],
  ndjson: ["server/http/result_format.ts", "const { asUser, schema } = head;"],
  csv: [
    "server/http/result_format.ts",
    'return `${schema.map(({ name }) => csvField(name)).join(",")}\\r\\n`;',
  ],
  pieces: [
    "sql/common/row_text.ts",
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
    "while (!staged.settle()) await run.pause();",
  ],
  transaction: ["sql/request/request_transaction.ts", "const writes = [...transaction.writes()];"],
  "long transaction": [
    "sql/request/request_transaction.ts",
    "while (!staged.settle()) await pause();",
  ],
  upload: [
    "sql/files/uploads.ts",
    "this.#placed = this.#cellsOf(target, rows).map(({ columnId, key, upload }) => ({",
  ],
  "upload, listed": ["sql/files/uploads.ts", "this.#world?.blobs.publish("],
  download: ["sql/files/file_access.ts", "const fileId = /^\\d{1,16}/.exec(path.storedName)?.[0];"],
  key: ["sql/request/idempotency.ts", "const row = this.#recordOf(owner, key);"],
  record: ["sql/request/idempotency.ts", "const text = JSON.stringify(answer);"],
  audit: [
    "sql/common/audit_log.ts",
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
  "live batch": ["live/subscription.ts", "const { rows, lastSeq, isLast, messages } = step;"],
  "live change": ["live/feed.ts", "const { filter, program, sources } = group;"],
  "live turn": ["live/feed.ts", "const upTo = this.#store.visibleSeq;"],
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
    "// A drain that the runtime did not tell of delays by a second at most.",
  ],
  flush: ["storage/background/flush_table.ts", "const segmentId = manifest.nextSegmentId();"],
  merge: ["storage/background/merge_segments.ts", "const segmentId = manifest.nextSegmentId();"],
  backup: ["copies/backup.ts", "const { blobs, catalog, clock, store } = source;"],
  restore: [
    "copies/restore.ts",
    "requireRoom(disk, paths.root, { action, bytes: totalBytes, minFreeBytes });",
  ],
  erasure: ["sql/administer/erasure.ts", "const files = await removeFiles(world, owner);"],
  upkeep: [
    "storage/background/merge.ts",
    "const expiredSeq = table.expiredSeq(this.#options.seqs);",
  ],
  "free space": ["storage/local_store.ts", "this.#space.look();"],
  "flush, published": [
    "storage/background/flush_table.ts",
    "const segment = new OpenSegment(entry, files);",
  ],
  "merge, published": ["storage/background/merge_segments.ts", "const merged: OpenSegment[] = [];"],
  commit: [
    "storage/commit/commit.ts",
    "const group = this.groups.applied(commitLog.end(), lastSeq);",
  ],
  "staged commit": [
    "storage/commit/commit.ts",
    "const number = this.#commitLog.append(draft, { catalogSeq, firstSeq });",
  ],
};

const ROOT = join(import.meta.dir, "../../src");

const control = process.env["PLANTED_BUG"];
if (control !== undefined) plant(control);

function plant(path: string): void {
  let armed = "";
  let passed = 0;
  Object.assign(globalThis, {
    meetPlantedBug(stage: string): void {
      if (!existsSync(path)) return;
      const text = readFileSync(path, "utf8");
      if (text !== armed) passed = 0;
      armed = text;
      const bug = JSON.parse(text) as PlantedBug;
      if (bug.stage !== stage) return;
      passed += 1;
      if (passed <= bug.skip) return;
      rmSync(path);
      fail(bug.kind);
    },
  });
  const byFile = Map.groupBy(Object.entries(STAGES), ([, [file]]) => join(ROOT, file));
  Bun.plugin({
    name: "planted bugs",
    setup(build) {
      build.onLoad({ filter: /\/src\/.*\.ts$/ }, (args) => ({
        contents: withPlants(sourceAt(args.path), byFile.get(args.path) ?? []),
        loader: "ts",
      }));
    },
  });
}

/** Threads that read are planted in, too. */
const THREADS = join(ROOT, "threads/message_thread.ts");

function sourceAt(path: string): string {
  const source = readFileSync(path, "utf8");
  if (path !== THREADS) return source;
  const started = "new Worker(entry.href)";
  if (!source.includes(started)) throw new Error(`Cannot plant in threads: no "${started}"`);
  return source.replace(
    started,
    `new Worker(entry.href, { preload: ${JSON.stringify(import.meta.path)} })`,
  );
}

function withPlants(
  source: string,
  plants: readonly (readonly [stage: string, place: readonly [string, string]])[],
): string {
  let text = source;
  for (const [stage, [file, line]] of plants) {
    const parts = text.split("\n");
    const at = parts.findIndex((each) => each.trim() === line);
    const isOnce = at >= 0 && at === parts.findLastIndex((each) => each.trim() === line);
    if (!isOnce) throw new Error(`Cannot plant in ${file}: "${line}" is not there once`);
    parts[at] = `meetPlantedBug(${JSON.stringify(stage)}); ${parts[at] ?? ""}`;
    text = parts.join("\n");
  }
  return text;
}

function fail(kind: BugKind): never {
  switch (kind) {
    case "assertion":
      throw new AssertionError("a planted bug");
    case "type":
      return (undefined as unknown as { planted: () => never }).planted();
    case "range":
      throw new RangeError(`a planted bug: ${"x".repeat(-1)}`);
    case "stack":
      throw new Error(`a planted bug that did not overflow: ${overflow(1)}`);
    case "value":
      // oxlint-disable-next-line typescript/only-throw-error -- some code might
      throw "a planted bug";
  }
}

/** Not a tail call, which would need no stack. */
function overflow(depth: number): number {
  return overflow(depth + 1) + depth;
}
