/**
 * Defines the only table of the web analytics benchmark. It has a row for each page view and a
 * hundred columns, and each query reads only a few of them.
 */
import type { TableShape } from "../peers/engines.ts";

/** The possible types of a column. `data.ts` generates a column's values according to its name. */
type ColumnKind = "INT" | "BIGINT" | "DECIMAL(10,2)" | "DATE" | "TIMESTAMP" | "VARCHAR(200)";

const NAMED: readonly (readonly [string, ColumnKind])[] = [
  ["view_id", "BIGINT"],
  ["site_id", "INT"],
  ["view_date", "DATE"],
  ["view_time", "TIMESTAMP"],
  ["visitor_id", "BIGINT"],
  ["session_id", "BIGINT"],
  ["ip_number", "BIGINT"],
  ["region_id", "INT"],
  ["country", "VARCHAR(200)"],
  ["city", "VARCHAR(200)"],
  ["language", "VARCHAR(200)"],
  ["browser", "VARCHAR(200)"],
  ["browser_major", "INT"],
  ["system", "VARCHAR(200)"],
  ["device", "VARCHAR(200)"],
  ["phone_model", "VARCHAR(200)"],
  ["is_mobile", "INT"],
  ["screen_width", "INT"],
  ["screen_height", "INT"],
  ["window_width", "INT"],
  ["window_height", "INT"],
  ["color_depth", "INT"],
  ["url", "VARCHAR(200)"],
  ["url_hash", "BIGINT"],
  ["referrer", "VARCHAR(200)"],
  ["referrer_hash", "BIGINT"],
  ["title", "VARCHAR(200)"],
  ["search_phrase", "VARCHAR(200)"],
  ["search_engine", "INT"],
  ["campaign", "INT"],
  ["traffic_source", "INT"],
  ["is_reload", "INT"],
  ["is_download", "INT"],
  ["is_link", "INT"],
  ["is_bounce", "INT"],
  ["is_robot", "INT"],
  ["age", "INT"],
  ["interests", "INT"],
  ["dns_ms", "INT"],
  ["connect_ms", "INT"],
  ["response_ms", "INT"],
  ["render_ms", "INT"],
  ["scroll_depth", "INT"],
  ["seconds_on_page", "INT"],
  ["order_value", "DECIMAL(10,2)"],
  ["currency", "VARCHAR(200)"],
];

const FLAG_COUNT = 24;
const COUNTER_COUNT = 20;
const LABEL_COUNT = 10;

function numbered(
  name: string,
  kind: ColumnKind,
  count: number,
): (readonly [string, ColumnKind])[] {
  return Array.from({ length: count }, (_, i) => [`${name}_${i + 1}`, kind] as const);
}

export const COLUMNS: readonly (readonly [string, ColumnKind])[] = [
  ...NAMED,
  ...numbered("flag", "INT", FLAG_COUNT),
  ...numbered("counter", "INT", COUNTER_COUNT),
  ...numbered("label", "VARCHAR(200)", LABEL_COUNT),
];

const IS_QUOTED: ReadonlySet<ColumnKind> = new Set<ColumnKind>([
  "DATE",
  "TIMESTAMP",
  "VARCHAR(200)",
]);

export const VIEWS: TableShape = {
  name: "page_views",
  columns: COLUMNS.map(([name, kind], i) =>
    i === 0 ? `${name} ${kind} PRIMARY KEY` : `${name} ${kind} NOT NULL`,
  ).join(", "),
  foreign: [],
  numeric: new Set(COLUMNS.flatMap(([, kind], i) => (IS_QUOTED.has(kind) ? [] : [i]))),
};
