/**
 * Loads the flights and movies from vega-datasets, a development dependency with public data sets,
 * into two SHARED tables.
 */
import type { Api } from "./api.ts";

export interface Movie {
  readonly title: string;
  readonly genre: string | undefined;
  readonly rating: number | undefined;
}

const DATA = "../../node_modules/vega-datasets/data";
const ROWS_PER_STATEMENT = 1000;

const DEFINITIONS = `
  DROP NAMESPACE IF EXISTS demo CASCADE;
  CREATE NAMESPACE demo;
  CREATE SHARED TABLE demo.flights (
    id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), departed TIMESTAMP NOT NULL, delay INT,
    distance INT, origin TEXT NOT NULL, destination TEXT NOT NULL);
  CREATE SHARED TABLE demo.movies (
    id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), title TEXT NOT NULL, genre TEXT,
    director TEXT, released TEXT, gross BIGINT, rating DOUBLE)`;

const QUERIES: readonly (readonly [question: string, sql: string])[] = [
  [
    "Which airports send off the latest flights?",
    "SELECT origin, COUNT(*) AS flights, ROUND(AVG(delay), 1) AS delay FROM demo.flights " +
      "GROUP BY origin HAVING COUNT(*) > 200 ORDER BY delay DESC LIMIT 5",
  ],
  [
    "Which kinds of movies earn most?",
    "SELECT genre, COUNT(*) AS movies, ROUND(SUM(gross) / 1000000) AS million FROM demo.movies " +
      "WHERE genre IS NOT NULL GROUP BY genre ORDER BY million DESC LIMIT 5",
  ],
];

/** Loads both data sets and runs two queries. Returns the movies, which the chat talks about. */
export async function loadAndQuery(api: Api, print: (line: string) => void): Promise<Movie[]> {
  await api.sql(DEFINITIONS);
  const movies = await readMovies();
  const flights = await readSet("flights-20k.json");
  const startMs = performance.now();
  await insert(api, "demo.flights (departed, delay, distance, origin, destination)", flights, [
    (row) => text(String(row["date"]).replaceAll("/", "-")),
    (row) => number(row["delay"]),
    (row) => number(row["distance"]),
    (row) => text(row["origin"]),
    (row) => text(row["destination"]),
  ]);
  await insert(api, "demo.movies (title, genre, director, released, gross, rating)", movies, [
    (row) => text(row["Title"]),
    (row) => text(row["Major Genre"]),
    (row) => text(row["Director"]),
    (row) => text(row["Release Date"]),
    (row) => number(row["Worldwide Gross"]),
    (row) => number(row["IMDB Rating"]),
  ]);
  const rowCount = flights.length + movies.length;
  const perSecond = Math.round((rowCount * 1000) / (performance.now() - startMs));
  print(`${flights.length} flights and ${movies.length} movies inserted, ${perSecond} rows/s`);
  for (const [question, sql] of QUERIES) {
    const { rows, names, tookMs } = await api.sql(sql);
    print(`\n${question} (${tookMs.toFixed(1)} ms)`);
    for (const cells of [names, ...rows]) print(`  ${cells.map(column).join("")}`);
  }
  return movies.map((row) => ({
    title: String(row["Title"]),
    genre: typeof row["Major Genre"] === "string" ? row["Major Genre"] : undefined,
    rating: typeof row["IMDB Rating"] === "number" ? row["IMDB Rating"] : undefined,
  }));
}

type SourceRow = Readonly<Record<string, unknown>>;

async function readMovies(): Promise<SourceRow[]> {
  const movies = await readSet("movies.json");
  // The data set stores titles that look like numbers as numbers, and some titles are missing.
  return movies
    .filter((row) => row["Title"] !== null)
    .map((row) => Object.assign({}, row, { Title: String(row["Title"]) }));
}

async function readSet(name: string): Promise<SourceRow[]> {
  return (await Bun.file(new URL(`${DATA}/${name}`, import.meta.url)).json()) as SourceRow[];
}

async function insert(
  api: Api,
  target: string,
  rows: readonly SourceRow[],
  cells: readonly ((row: SourceRow) => string)[],
): Promise<void> {
  for (let start = 0; start < rows.length; start += ROWS_PER_STATEMENT) {
    const values = rows
      .slice(start, start + ROWS_PER_STATEMENT)
      .map((row) => `(${cells.map((cell) => cell(row)).join(", ")})`);
    await api.sql(`INSERT INTO ${target} VALUES ${values.join(", ")}`);
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : "NULL";
}

function number(value: unknown): string {
  return typeof value === "number" ? String(value) : "NULL";
}

function column(cell: unknown): string {
  return String(cell).padEnd(22);
}
