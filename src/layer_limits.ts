/**
 * Derives each layer's limits from the configuration, in the layer's own terms and units.
 *
 * The layers do not receive configuration keys, so renaming a key, or changing its unit, does not
 * affect them. The limits for `auth` are in `config/config.ts`, because deriving them also
 * requires a secret. `server` is the exception: it receives the keys listed in
 * `server/contract/options.ts`, under their names in the file.
 */

import type { BackupLimits } from "./backup/mod.ts";
import { HOUR_MS } from "./base/clock.ts";
import { COMMIT_BYTES_MAX } from "./base/limits.ts";
import { threadModule } from "./base/sources.ts";
import { type Config, shareOf } from "./config/mod.ts";
import type { LiveLimits } from "./live/mod.ts";
import type { ServerMemory } from "./server/mod.ts";
import type { SqlLimits, TableDefaults } from "./sql/mod.ts";
import type { LocalStoreOptions } from "./storage/mod.ts";
import type { SegmentThreadOptions } from "./threads/mod.ts";
import type { TopicLimits } from "./topics/mod.ts";

const MIB = 2 ** 20;

/** The number of request bodies of the maximum size that may be in memory at once. */
const BODIES_MAX = 8;

export function backupLimits({ performance, storage }: Config): BackupLimits {
  return {
    heldBytesMax: heldLogBytes(performance.memory_bytes),
    allowedRoots: storage.allowed_roots,
    archivePath: storage.archive_path,
    minFreeBytes: storage.min_free_bytes,
    walMaxBytes: storage.wal_max_bytes,
  };
}

/** Returns how many bytes of the log a point-in-time restore may keep in memory. */
export function heldLogBytes(memoryBytes: number): number {
  return Math.min(256 * MIB, shareOf(memoryBytes, 1 / 8));
}

export function storeOptions({ cluster, limits, performance, storage }: Config): LocalStoreOptions {
  return {
    nodeId: cluster.node_id,
    nodeBits: cluster.node_bits,
    durability: storage.durability,
    walSegmentBytes: storage.wal_segment_bytes,
    walMaxBytes: storage.wal_max_bytes,
    rowBytesMax: limits.max_row_bytes,
    minFreeBytes: storage.min_free_bytes,
    ballastBytes: storage.ballast_bytes,
    historyBytesMax: storage.history_max_bytes,
    cacheBytes: storage.cache_bytes,
    memtableBytesMax: storage.memtable_bytes,
    commitBytesMax: Math.min(COMMIT_BYTES_MAX, shareOf(performance.memory_bytes, 1 / 4)),
  };
}

/**
 * Returns the limits for the threads that write segments. A flush and a merge of wide rows
 * together take up to 100 MiB, more than a server with 256 MiB can spare under load.
 */
export function segmentThreads({ performance }: Config): SegmentThreadOptions {
  const { memory_bytes: bytes } = performance;
  return {
    entry: threadModule("segment_worker", import.meta.url),
    garbageBytesMax: Math.min(64 * MIB, shareOf(bytes, 1 / 16)),
    isSingle: bytes < 512 * MIB,
  };
}

export function tableDefaults({ storage }: Config): TableDefaults {
  return {
    flush: { rowsMax: storage.flush_rows, ageMsMax: storage.flush_interval_secs * 1000 },
    historyMs: storage.history_hours * HOUR_MS,
  };
}

/** The maximum total size of the cached plans on a large machine, enough for about 2,000 plans. */
const PLAN_BYTES_MAX: number = 24 * MIB;

export function sqlLimits({ files, limits, logging, performance }: Config): SqlLimits {
  return {
    sqlBytesMax: limits.max_sql_bytes,
    parametersMax: limits.max_parameters,
    parameterBytesMax: limits.max_parameter_bytes,
    resultRowsMax: limits.max_result_rows,
    timeoutMs: performance.request_timeout * 1000,
    timeoutMsMax: limits.max_timeout_ms,
    requiresWhere: limits.require_where,
    transactionTimeoutMs: limits.transaction_timeout_secs * 1000,
    transactionBytesMax: limits.transaction_max_bytes,
    transactionIdleMs: limits.transaction_idle_secs * 1000,
    transactionsMax: limits.max_transactions,
    transactionsPerUser: limits.transactions_per_user,
    idempotencyTtlMs: limits.idempotency_ttl_secs * 1000,
    idempotencyBytesMax: limits.idempotency_bytes_per_user,
    storageBytesMax: limits.storage_bytes_per_user,
    queryMemoryBytes: performance.query_memory_bytes,
    totalQueryMemoryBytes: performance.total_query_memory_bytes,
    planBytes: Math.min(PLAN_BYTES_MAX, shareOf(performance.memory_bytes, 1 / 32)),
    slowQueryMs: logging.slow_query_threshold_ms,
    filesPerFolderMax: files.max_files_per_folder,
  };
}

export function liveLimits({ limits, websocket }: Config): LiveLimits {
  return {
    subscriptionsPerUser: limits.subscriptions_per_user,
    subscriptionsPerConnection: limits.subscriptions_per_connection,
    batchSizeDefault: websocket.default_batch_size,
    batchSizeMax: websocket.max_batch_size,
    frameBytesMax: websocket.max_frame_bytes,
    loadingTimeoutMs: websocket.loading_timeout_secs * 1000,
    replayChangesMax: websocket.replay_changes,
    stateBytesMax: limits.live_state_bytes,
  };
}

export function topicLimits({ limits }: Config): TopicLimits {
  return { visibilityMs: limits.topic_visibility_secs * 1000 };
}

/** Returns the memory limits that have no configuration key of their own. */
export function serverMemory({ files, limits, performance }: Config): ServerMemory {
  const share = (part: number, bytesMax: number): number =>
    Math.min(bytesMax, shareOf(performance.memory_bytes, part));
  const bodyBytes = Math.max(files.max_request_bytes, limits.max_body_bytes);
  return {
    bodyBytes: share(1 / 16, 512 * MIB),
    largeBodyBytes: Math.max(bodyBytes, share(1 / 16, BODIES_MAX * bodyBytes)),
    // A single user may use up to a quarter of this amount, and the runtime reserves four times
    // the size of the largest message. The minimum is therefore 16 times that size.
    messageBytes: Math.max(16 * limits.max_message_size, share(1 / 32, 512 * MIB)),
    sendQueueBytes: share(1 / 32, Number.POSITIVE_INFINITY),
  };
}
