/** Exposes the server's counters in the Prometheus text format (0.0.4). */
import type { Clock } from "../../base/clock.ts";
import type { Descriptors } from "../../base/descriptors.ts";
import { residentBytes } from "../../base/memory_usage.ts";
import { DELIVERY_BOUNDS, type DeliveryReport } from "../../live/mod.ts";
import type { MemoryPart, MetricSample, ReaderCounts } from "../../sql/mod.ts";
import type { TopicFigures, WebhookFigures } from "../../topics/mod.ts";
import type { ArchiveGauge, MemoryGivenBack, StorageGauge } from "../contract/options.ts";

/** Upper bounds of the request duration buckets, in seconds. */
const DURATION_BOUNDS: readonly number[] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];

/**
 * Functions that return the current value of each gauge. They are called whenever metrics are
 * requested.
 */
export interface Gauges {
  readonly sockets: () => number;
  readonly eventStreams: () => number;
  readonly subscriptions: () => number;
  readonly requestsRunning: () => number;
  readonly bugs: () => number;
  readonly delivery: () => DeliveryReport;
  readonly topics: () => TopicFigures;
  readonly webhooks: () => WebhookFigures;
  /** Returns the archive's backlog; undefined if the log is not archived. */
  readonly archive: () => ArchiveGauge | undefined;
  readonly storage: () => StorageGauge;
  readonly memory: () => readonly MemoryPart[];
  readonly memoryGivenBack: () => MemoryGivenBack;
  /** Returns the readers' counts; undefined if every query runs on the event loop. */
  readonly readers: () => ReaderCounts | undefined;
  /** Returns the descriptors in use; undefined if their number is not limited. */
  readonly descriptors: () => DescriptorGauge | undefined;
}

/**
 * The number of files and sockets that the process has open, and how many times the server has
 * stopped accepting connections because few descriptors were left.
 */
export interface DescriptorGauge extends Descriptors {
  /**
   * Whether the server has currently stopped accepting connections because few descriptors are
   * left.
   */
  readonly isPaused: boolean;
  readonly pauseCount: number;
}

export interface MetricsOptions {
  readonly clock: Clock;
  readonly version: string;
  readonly gauges: Gauges;
}

export class Metrics {
  readonly #options: MetricsOptions;
  readonly #startedMs: number;
  readonly #requestsByStatus = new Map<number, number>();
  readonly #durationCounts: number[] = DURATION_BOUNDS.map(() => 0);
  #durationSum = 0;
  #requestCount = 0;
  #socketCount = 0;

  constructor(options: MetricsOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
  }

  get uptimeSeconds(): number {
    return (this.#options.clock.monotonicMs() - this.#startedMs) / 1000;
  }

  request(status: number, durationMs: number): void {
    this.#requestsByStatus.set(status, (this.#requestsByStatus.get(status) ?? 0) + 1);
    const seconds = durationMs / 1000;
    this.#durationSum += seconds;
    this.#requestCount += 1;
    for (let index = 0; index < DURATION_BOUNDS.length; index += 1) {
      if (seconds > (DURATION_BOUNDS[index] ?? 0)) continue;
      this.#durationCounts[index] = (this.#durationCounts[index] ?? 0) + 1;
      return;
    }
  }

  socketOpened(): void {
    this.#socketCount += 1;
  }

  text(): string {
    const { version, gauges } = this.#options;
    const lines: string[] = [];
    const metric = (name: string, type: string, help: string): void => {
      lines.push(...headLines(name, type, help));
    };
    metric("tidemark_build_info", "gauge", "Version of the server.");
    lines.push(`tidemark_build_info{version="${version}"} 1`);
    metric("tidemark_uptime_seconds", "gauge", "Time since the server started, in seconds.");
    lines.push(`tidemark_uptime_seconds ${this.uptimeSeconds.toFixed(3)}`);
    metric(
      "process_resident_memory_bytes",
      "gauge",
      "Resident memory of the server process, in bytes.",
    );
    lines.push(`process_resident_memory_bytes ${residentBytes()}`);
    lines.push(...memoryLines(gauges.memory()), ...givenBackLines(gauges.memoryGivenBack()));
    metric("tidemark_http_requests_total", "counter", "HTTP requests answered, by status code.");
    for (const [status, count] of [...this.#requestsByStatus].toSorted(([a], [b]) => a - b)) {
      lines.push(`tidemark_http_requests_total{status="${status}"} ${count}`);
    }
    this.#durationLines(lines);
    metric("tidemark_http_requests_running", "gauge", "HTTP requests in progress.");
    lines.push(`tidemark_http_requests_running ${gauges.requestsRunning()}`);
    metric(
      "tidemark_bugs_total",
      "counter",
      "Requests, subscriptions, connections and jobs that ended because of a bug in the server.",
    );
    lines.push(`tidemark_bugs_total ${gauges.bugs()}`);
    metric("tidemark_websocket_connections", "gauge", "Open WebSocket connections.");
    lines.push(`tidemark_websocket_connections ${gauges.sockets()}`);
    metric(
      "tidemark_websocket_connections_total",
      "counter",
      "WebSocket connections opened since the server started.",
    );
    lines.push(`tidemark_websocket_connections_total ${this.#socketCount}`);
    metric("tidemark_event_streams", "gauge", "Open streams of server-sent events.");
    lines.push(`tidemark_event_streams ${gauges.eventStreams()}`);
    metric("tidemark_subscriptions", "gauge", "Open subscriptions.");
    lines.push(`tidemark_subscriptions ${gauges.subscriptions()}`);
    lines.push(...readerLines(gauges.readers()), ...descriptorLines(gauges.descriptors()));
    lines.push(...storageLines(gauges.storage()), ...archiveLines(gauges.archive()));
    lines.push(...deliveryLines(gauges.delivery()));
    lines.push(...topicLines(gauges.topics()), ...webhookLines(gauges.webhooks()));
    return `${lines.join("\n")}\n`;
  }

  /** Returns the metrics as individual samples. */
  samples(): readonly MetricSample[] {
    const samples: MetricSample[] = [];
    let description: string | undefined;
    for (const line of this.text().trimEnd().split("\n")) {
      if (line.startsWith("# HELP ")) description = line.split(" ").slice(3).join(" ");
      if (line.startsWith("#")) continue;
      const space = line.lastIndexOf(" ");
      samples.push({ name: line.slice(0, space), value: line.slice(space + 1), description });
    }
    return samples;
  }

  #durationLines(lines: string[]): void {
    const name = "tidemark_http_request_duration_seconds";
    lines.push(
      `# HELP ${name} Time taken to respond to an HTTP request, in seconds.`,
      `# TYPE ${name} histogram`,
    );
    const inBounds = this.#durationCounts.reduce((sum, count) => sum + count, 0);
    const counts = [...this.#durationCounts, this.#requestCount - inBounds];
    const sumSeconds = this.#durationSum;
    histogramLines(lines, { name, bounds: DURATION_BOUNDS, counts, sumSeconds });
  }
}

function deliveryLines(delivery: DeliveryReport): readonly string[] {
  const changes = "tidemark_live_changes_total";
  const name = "tidemark_live_delivery_seconds";
  const help = "Time from a commit until its changes are queued for a connection, in seconds.";
  const lines = [
    ...gaugeLines(
      "tidemark_subscriptions_loading",
      "Subscriptions that are sending their initial rows or replaying missed changes.",
      delivery.loading,
    ),
    ...gaugeLines(
      "tidemark_subscriptions_behind",
      "Subscriptions that have sent their initial rows but still have changes to send.",
      delivery.behind,
    ),
    ...headLines(
      "tidemark_live_lag_seconds",
      "gauge",
      "Time by which the slowest subscription lags behind, in seconds.",
    ),
    `tidemark_live_lag_seconds ${(delivery.lagMsMax / 1000).toFixed(3)}`,
    ...headLines(changes, "counter", "Changes sent to subscriptions since the server started."),
    `${changes} ${delivery.changes}`,
    ...headLines(name, "histogram", help),
  ];
  histogramLines(lines, { name, bounds: DELIVERY_BOUNDS, ...delivery });
  return lines;
}

function topicLines(figures: TopicFigures): readonly string[] {
  const redeliveries = "tidemark_topic_redeliveries_total";
  return [
    ...gaugeLines(
      "tidemark_topic_consumers",
      "Topic consumers that are waiting for messages or have unacknowledged ones.",
      figures.consumers,
    ),
    ...gaugeLines(
      "tidemark_topic_claims",
      "Topic messages delivered but not yet acknowledged.",
      figures.claims,
    ),
    ...gaugeLines(
      "tidemark_topic_lag_messages",
      "Topic messages that active consumer groups have not yet acknowledged.",
      figures.lagMessages,
    ),
    ...headLines(redeliveries, "counter", "Topic messages delivered more than once."),
    `${redeliveries} ${figures.redeliveries}`,
  ];
}

function webhookLines({ delivered, failed, ...statuses }: WebhookFigures): readonly string[] {
  const count = "tidemark_webhooks";
  const requests = "tidemark_webhook_requests_total";
  return [
    ...headLines(count, "gauge", "Webhooks, by status."),
    ...Object.entries(statuses).map(([status, value]) => `${count}{status="${status}"} ${value}`),
    ...headLines(
      requests,
      "counter",
      "Requests sent by webhooks, by whether the receiver accepted them.",
    ),
    `${requests}{outcome="delivered"} ${delivered}`,
    `${requests}{outcome="failed"} ${failed}`,
  ];
}

function storageLines({
  failedJobs,
  freeBytes,
  isReadOnly,
  logBytes,
  quarantinedSegments,
}: StorageGauge): readonly string[] {
  const failed = "tidemark_jobs_failed_total";
  return [
    ...(freeBytes === undefined
      ? []
      : gaugeLines(
          "tidemark_disk_free_bytes",
          "Free space on the disk that holds the data, in bytes.",
          freeBytes,
        )),
    ...gaugeLines(
      "tidemark_read_only",
      "1 if the server accepts only reads, DELETE, DROP and account changes, otherwise 0.",
      isReadOnly ? 1 : 0,
    ),
    ...gaugeLines(
      "tidemark_log_bytes",
      "Total size of the write-ahead log files, in bytes.",
      logBytes,
    ),
    ...gaugeLines(
      "tidemark_quarantined_segments",
      "Segments quarantined because they are damaged.",
      quarantinedSegments,
    ),
    ...headLines(failed, "counter", "Failed background jobs, by job type."),
    ...[...failedJobs].map(([type, count]) => `${failed}{job_type="${type}"} ${count}`),
  ];
}

function memoryLines(parts: readonly MemoryPart[]): readonly string[] {
  const used = "tidemark_memory_bytes";
  const allowed = "tidemark_memory_allowed_bytes";
  return [
    ...headLines(used, "gauge", "Memory used, in bytes, by part (see system.memory)."),
    ...parts.map(({ part, usedBytes }) => `${used}{part="${part}"} ${usedBytes}`),
    ...headLines(allowed, "gauge", "Memory limit in bytes, by part."),
    ...parts.flatMap(({ allowedBytes, part }) =>
      allowedBytes === undefined ? [] : `${allowed}{part="${part}"} ${allowedBytes}`,
    ),
  ];
}

function givenBackLines({ caches, collections, flushes }: MemoryGivenBack): readonly string[] {
  const name = "tidemark_memory_given_back_total";
  return [
    ...headLines(
      name,
      "counter",
      "Number of times that memory was released because usage neared the limit, by method.",
    ),
    `${name}{means="collection"} ${collections}`,
    `${name}{means="cache"} ${caches}`,
    `${name}{means="early_flush"} ${flushes}`,
  ];
}

function readerLines(counts: ReaderCounts | undefined): readonly string[] {
  if (counts === undefined) return [];
  const queries = "tidemark_queries_in_readers_total";
  const waited = "tidemark_statements_waited_total";
  const seconds = "tidemark_statements_wait_seconds_total";
  return [
    ...gaugeLines(
      "tidemark_readers_open",
      "Threads available for long-running queries.",
      counts.open,
    ),
    ...gaugeLines(
      "tidemark_readers_busy",
      "Reader threads currently running a query.",
      counts.busy,
    ),
    ...headLines(queries, "counter", "Queries started on reader threads."),
    `${queries} ${counts.queries}`,
    ...gaugeLines(
      "tidemark_statements_waiting",
      "Long-running statements waiting for a reader thread or for memory.",
      counts.waiting,
    ),
    ...headLines(
      waited,
      "counter",
      "Long-running statements that had to wait for a reader thread or for memory.",
    ),
    `${waited} ${counts.waited}`,
    ...headLines(
      seconds,
      "counter",
      "Total time that long-running statements spent waiting, in seconds.",
    ),
    `${seconds} ${(counts.waitedMs / 1000).toFixed(3)}`,
  ];
}

function descriptorLines(descriptors: DescriptorGauge | undefined): readonly string[] {
  if (descriptors === undefined) return [];
  const { isPaused, max, open, pauseCount } = descriptors;
  const pauses = "tidemark_accept_pauses_total";
  return [
    ...gaugeLines("process_open_fds", "Open file descriptors.", open),
    ...gaugeLines("process_max_fds", "Maximum number of open file descriptors.", max),
    ...gaugeLines(
      "tidemark_accept_paused",
      "1 if the server has paused accepting connections because few file descriptors are left, " +
        "otherwise 0.",
      isPaused ? 1 : 0,
    ),
    ...headLines(
      pauses,
      "counter",
      "Number of times that the server paused accepting connections.",
    ),
    `${pauses} ${pauseCount}`,
  ];
}

function archiveLines(archive: ArchiveGauge | undefined): readonly string[] {
  if (archive === undefined) return [];
  const { bytes, failure, files, lostFiles } = archive;
  const lost = "tidemark_archive_lost_files_total";
  return [
    ...gaugeLines(
      "tidemark_archive_waiting_files",
      "Completed write-ahead log files not yet archived.",
      files,
    ),
    ...gaugeLines(
      "tidemark_archive_waiting_bytes",
      "Total size of the completed write-ahead log files not yet archived, in bytes.",
      bytes,
    ),
    ...gaugeLines(
      "tidemark_archive_failing",
      "1 if archiving the write-ahead log is failing, otherwise 0.",
      failure === undefined ? 0 : 1,
    ),
    ...headLines(lost, "counter", "Write-ahead log files deleted before they could be archived."),
    `${lost} ${lostFiles}`,
  ];
}

function gaugeLines(name: string, help: string, value: number): readonly string[] {
  return [...headLines(name, "gauge", help), `${name} ${value}`];
}

function headLines(name: string, type: string, help: string): readonly string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

/**
 * Appends the lines of a histogram.
 * @param counts One count per bound, and one for values above the last bound.
 */
function histogramLines(lines: string[], { bounds, counts, name, sumSeconds }: Histogram): void {
  let cumulative = 0;
  for (const [index, bound] of bounds.entries()) {
    cumulative += counts[index] ?? 0;
    lines.push(`${name}_bucket{le="${bound}"} ${cumulative}`);
  }
  cumulative += counts[bounds.length] ?? 0;
  lines.push(
    `${name}_bucket{le="+Inf"} ${cumulative}`,
    `${name}_sum ${sumSeconds.toFixed(6)}`,
    `${name}_count ${cumulative}`,
  );
}

interface Histogram {
  readonly name: string;
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  readonly sumSeconds: number;
}
