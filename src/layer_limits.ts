/**
 * What each layer may take, in its own words and units, from the configuration.
 *
 * These layers are handed no key of the file, so that one may be renamed, or counted in another
 * unit, without them. `auth` has the same in `config/config.ts`, as it is given a secret besides.
 * `server` is the exception: it is handed the keys that `server/common/options.ts` lists, named as
 * in the file.
 */
import { HOUR_MS } from "./base/clock.ts";
import type { Config } from "./config/mod.ts";
import type { CopyLimits } from "./copies/mod.ts";
import type { LiveLimits } from "./live/mod.ts";
import type { SqlLimits, TableDefaults } from "./sql/mod.ts";
import type { LocalStoreOptions } from "./storage/mod.ts";

export function copyLimits({ storage }: Config): CopyLimits {
  return {
    allowedRoots: storage.allowed_roots,
    archivePath: storage.archive_path,
    minFreeBytes: storage.min_free_bytes,
    walMaxBytes: storage.wal_max_bytes,
  };
}

export function storeOptions({ cluster, limits, storage }: Config): LocalStoreOptions {
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
  };
}

export function tableDefaults({ storage }: Config): TableDefaults {
  return {
    flush: { rowsMax: storage.flush_rows, ageMsMax: storage.flush_interval_secs * 1000 },
    historyMs: storage.history_hours * HOUR_MS,
  };
}

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
    idempotencyTtlMs: limits.idempotency_ttl_secs * 1000,
    idempotencyBytesMax: limits.idempotency_bytes_per_user,
    storageBytesMax: limits.storage_bytes_per_user,
    queryMemoryBytes: performance.query_memory_bytes,
    totalQueryMemoryBytes: performance.total_query_memory_bytes,
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
  };
}
