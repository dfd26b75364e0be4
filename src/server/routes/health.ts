/**
 * Serves the probes: liveness, readiness, and metrics.
 */
import { type Auth, mayRun } from "../../auth/mod.ts";
import type { IpRanges } from "../../base/ip_address.ts";
import { residentBytes } from "../../base/memory_usage.ts";
import type {
  AliveBody,
  ClusterHealthBody,
  HealthBody,
  ReadinessBody,
} from "../../protocol/mod.ts";
import type { Exchange } from "../http/exchange.ts";
import { HttpError } from "../http/http_error.ts";
import type { Operation } from "../http/operation.ts";
import { apiHeaders, json, textResponse } from "../http/responses.ts";
import type { Route, RouteFunction } from "../http/route.ts";
import type { Metrics } from "../measures/metrics.ts";
import { healthOperation, PROBE_OPERATIONS as operations } from "../openapi/operations.ts";

export interface HealthRouteOptions {
  readonly auth: Auth;
  readonly metrics: Metrics;
  readonly metricsAllow: IpRanges;
  readonly mayCompress: boolean;
  readonly version: string;
  readonly buildDate: string;
  readonly isStopping: () => boolean;
  readonly nodeId: number;
  /** Returns whether the server refuses writes because the disk is full. */
  readonly isReadOnly: () => boolean;
  /**
   * Returns the host and port of the API. The cluster health response reports them for the
   * server's only node.
   */
  readonly apiAddress: () => string;
  readonly uptimeSeconds: () => number;
}

const METRICS_HEADERS = apiHeaders("text/plain; version=0.0.4; charset=utf-8");

export function healthRoutes(options: HealthRouteOptions): readonly Route[] {
  const { version, buildDate } = options;
  const body: HealthBody = {
    status: "healthy",
    api_version: "v1",
    version,
    build_date: buildDate,
  };
  const alive: AliveBody = { status: "alive" };
  const healthy = localOnly((exchange) => json(exchange, 200, body));
  return [
    route("/health", healthOperation("health"), healthy),
    route("/v1/api/healthcheck", healthOperation("healthcheck"), healthy),
    route(
      "/v1/api/cluster/health",
      operations.clusterHealth,
      localOnly((exchange) => json(exchange, 200, clusterBody(options))),
    ),
    route("/health/live", operations.live, (exchange) => json(exchange, 200, alive)),
    route("/health/ready", operations.ready, (exchange) => {
      const readiness = readinessBody(options);
      return json(exchange, readiness.status === "ready" ? 200 : 503, readiness);
    }),
    // Every endpoint that requires a bearer token reports a failed authentication in shape B, and
    // so does this one.
    {
      ...route("/metrics", operations.metrics, (exchange) => metrics(exchange, options)),
      shape: "B",
    },
  ];
}

function route(path: string, operation: Operation, handle: RouteFunction): Route {
  return { path, method: "GET", shape: "A", operation, handle };
}

function readinessBody(options: HealthRouteOptions): ReadinessBody {
  if (options.isStopping()) return { status: "draining" };
  // A server with a full disk is ready: it still serves reads, and it must be able to serve DELETE
  // and DROP, which free space.
  return { status: "ready", ...(options.isReadOnly() ? { read_only: true } : {}) };
}

/**
 * Refuses callers on other machines. It also refuses web pages of other sites that are open in a
 * browser on this machine.
 */
function localOnly(handle: RouteFunction): RouteFunction {
  return (exchange) => {
    if (!exchange.isLocal) {
      throw new HttpError(
        403,
        "forbidden",
        "Only callers on the server's own machine may use this endpoint",
      );
    }
    if (!exchange.isHostAllowed) {
      throw new HttpError(
        403,
        "host_not_allowed",
        "The request's Host header does not name this server; to accept more names, add them " +
          "to security.allowed_hosts",
      );
    }
    return handle(exchange);
  };
}

function metrics(exchange: Exchange, options: HealthRouteOptions): Response | Promise<Response> {
  if (!isOnAllowList(exchange, options.metricsAllow)) {
    const header = exchange.request.headers.get("authorization");
    if (!mayRun(options.auth.authenticateHeader(header, exchange), "inspect")) {
      throw new HttpError(
        403,
        "INSUFFICIENT_PERMISSIONS",
        "Cannot read the metrics: this requires the role dba or system",
      );
    }
  }
  return textResponse(exchange, options.metrics.text(), {
    status: 200,
    headers: METRICS_HEADERS,
    mayCompress: options.mayCompress,
  });
}

function isOnAllowList({ origin }: Exchange, allowed: IpRanges): boolean {
  if (origin.ip === undefined || origin.isForwardingDoubtful) return false;
  return allowed.has(origin.ip);
}

/** Returns the health of a cluster that consists of this server alone. */
function clusterBody(options: HealthRouteOptions): ClusterHealthBody {
  const uptimeSeconds = Math.floor(options.uptimeSeconds());
  return {
    status: options.isStopping() ? "degraded" : "healthy",
    version: options.version,
    build_date: options.buildDate,
    is_cluster_mode: false,
    cluster_id: "standalone",
    node_id: options.nodeId,
    is_leader: true,
    total_groups: 0,
    groups_leading: 0,
    current_term: 0,
    last_applied: null,
    millis_since_quorum_ack: null,
    nodes: [
      {
        node_id: options.nodeId,
        role: "leader",
        status: "active",
        api_addr: options.apiAddress(),
        is_self: true,
        is_leader: true,
        replication_lag: null,
        catchup_progress_pct: null,
        hostname: null,
        memory_usage_mb: Math.round(residentBytes() / 1048576),
        cpu_usage_percent: null,
        uptime_seconds: uptimeSeconds,
        uptime_human: humanDuration(uptimeSeconds),
      },
    ],
  };
}

function humanDuration(seconds: number): string {
  const days = Math.floor(seconds / 86400);
  const hours = Math.floor(seconds / 3600) % 24;
  const minutes = Math.floor(seconds / 60) % 60;
  const parts = [
    [days, "d"],
    [hours, "h"],
    [minutes, "m"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  const shown = first < 0 ? parts.slice(-1) : parts.slice(first, first + 2);
  return shown.map(([count, unit]) => `${count}${unit}`).join(" ");
}
