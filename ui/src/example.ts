/**
 * The text that the editor initially shows to a new user. The text can be run any number of times.
 * While a user follows the example's rows, the page itself changes one of them every second.
 */

const STATIONS: readonly {
  readonly name: string;
  readonly mean: number;
  readonly range: number;
}[] = [
  { name: "Bergen", mean: 90, range: 60 },
  { name: "Brest", mean: 400, range: 290 },
  { name: "Cuxhaven", mean: 200, range: 150 },
  { name: "Dover", mean: 370, range: 280 },
];

export const EXAMPLE: string = `-- Press Live and watch the rows move. Ctrl+Enter (Cmd+Enter on a Mac) runs everything once.
CREATE NAMESPACE IF NOT EXISTS demo;
CREATE TABLE IF NOT EXISTS demo.tides (
  station TEXT PRIMARY KEY,
  level_cm INT NOT NULL,
  measured TIMESTAMPTZ DEFAULT now()
);
INSERT INTO demo.tides (station, level_cm) VALUES
  ${STATIONS.map(({ mean, name }) => `('${name}', ${mean})`).join(", ")}
  ON CONFLICT (station) DO NOTHING;
SELECT * FROM demo.tides;
`;

export const MOVE_MS = 1000;

/** The number of changes in one cycle of the example. */
const MOVES_PER_TIDE = 60;

export function isExample(sql: string): boolean {
  return sql.trim() === EXAMPLE.trim();
}

/** Returns the statement for change number `count`, with its parameters. */
export function moveOf(count: number): { sql: string; params: [number, string] } {
  const index = count % STATIONS.length;
  const { mean = 0, name = "", range = 0 } = STATIONS[index] ?? {};
  const level = mean + range * Math.sin((2 * Math.PI * count) / MOVES_PER_TIDE + index);
  return {
    sql: "UPDATE demo.tides SET level_cm = $1, measured = now() WHERE station = $2",
    params: [Math.round(level), name],
  };
}
