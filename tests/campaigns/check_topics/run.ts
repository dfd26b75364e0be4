/**
 * Runs the topics checker once: the real server in its own process, writers over SQL, and groups
 * of consumers over HTTP. During the run, tables are flushed and merged, and the server is stopped
 * and killed. At the end, each group is compared with the writers' ledger.
 */
import { SeededRandom } from "../../support/seeded_random.ts";
import { type ServerProcess, startReadyServer } from "../../support/server_process.ts";
import { type Signal, spread, World } from "../check_live/world.ts";
import { Consumer, type GroupForm } from "./consumer.ts";
import { FOUND_AS, type InjectedFault, Tamperer } from "./injected_faults.ts";
import { type Contents, type Faults, GroupJudge, noFaults } from "./judge.ts";
import { Ledger, TOPICS } from "./ledger.ts";
import { Writer } from "./writer.ts";

const USERS = ["alice", "bob"];

/**
 * How long a claim lasts, in seconds. Claims are short, so that some of them expire in every run.
 */
const VISIBILITY_SECONDS = 2;

/** How long the groups may take to finish once the writers have finished, in milliseconds. */
const CATCH_UP_MS_MAX = 120_000;

const PROGRESS_EVERY_MS = 5000;
const FLUSH_EVERY_MS = 2000;

/**
 * The maximum number of characters of the server's output that are shown when a run is aborted.
 */
const OUTPUT_LENGTH_MAX = 4000;

const GROUPS: readonly GroupForm[] = [
  { name: "many", topic: "app.all_items", consumers: 8, manner: "single", isOrdered: false },
  { name: "ordered", topic: "app.all_items", consumers: 3, manner: "single", isOrdered: true },
  { name: "mixed", topic: "app.mixed", consumers: 2, manner: "cumulative", isOrdered: false },
  { name: "effects", topic: "app.of_users", consumers: 4, manner: "effects", isOrdered: false },
  { name: "notes", topic: "app.of_users", consumers: 1, manner: "cumulative", isOrdered: false },
  { name: "rooms", topic: "app.rooms", consumers: 3, manner: "single", isOrdered: true },
];

export interface CheckOptions {
  readonly changes: number;
  readonly writers: number;
  readonly restarts: number;
  readonly seed: number;
  /** The faults to inject. Each fault damages its own group. */
  readonly injected: readonly InjectedFault[];
  readonly onProgress: (report: CheckReport) => void;
}

export interface CheckReport {
  readonly written: number;
  readonly delivered: number;
  readonly redelivered: number;
  readonly crashes: number;
  readonly stalls: number;
  readonly restarts: Readonly<Record<Signal, number>>;
  /** The faults found in groups that are not damaged. */
  readonly faults: Faults;
  readonly findings: readonly string[];
  /** The injected faults that were found in the groups that they damage. */
  readonly noticed: readonly InjectedFault[];
}

interface Group {
  readonly form: GroupForm;
  readonly judge: GroupJudge;
  readonly consumers: readonly Consumer[];
  /** The fault that damages the group; undefined if the group is not damaged. */
  readonly injected: InjectedFault | undefined;
}

interface Run {
  readonly options: CheckOptions;
  readonly world: World;
  readonly ledger: Ledger;
  readonly random: SeededRandom;
  readonly tokens: ReadonlyMap<string, string>;
  readonly groups: readonly Group[];
}

export async function checkTopics(options: CheckOptions): Promise<CheckReport> {
  await using server = await startReadyServer({
    config: {
      limits: { topic_visibility_secs: VISIBILITY_SECONDS },
      logging: { level: "warn" },
    },
  });
  try {
    const tokens = await prepare(server);
    const world = new World(server);
    const random = new SeededRandom(options.seed);
    const groups = groupsOf(options, { random, world });
    return await check({ options, world, ledger: new Ledger(), random, tokens, groups });
  } catch (error) {
    const said = server.output.slice(-OUTPUT_LENGTH_MAX);
    const message = `The run broke off; the server, ${server.condition}, last said:\n${said}`;
    throw new Error(message, { cause: error });
  }
}

async function prepare(server: ServerProcess): Promise<ReadonlyMap<string, string>> {
  const columns = "(id BIGINT PRIMARY KEY, room TEXT, n BIGINT)";
  await server.rows(
    `CREATE NAMESPACE app; CREATE TABLE app.notes ${columns} WITH (TYPE = 'USER'); ` +
      `CREATE SHARED TABLE app.items ${columns}; CREATE SHARED TABLE app.board ${columns}; ` +
      "CREATE SHARED TABLE app.effects (id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), " +
      "partition_id INT, message_offset BIGINT)",
  );
  for (const { name, partitions, statements } of TOPICS) {
    await server.rows(`CREATE TOPIC ${name} PARTITIONS ${partitions}; ${statements.join("; ")}`);
  }
  const tokens = new Map<string, string>();
  for (const user of USERS) tokens.set(user, await server.createUser(user));
  return tokens;
}

/**
 * Creates the groups. Groups of the same topic share the known contents of its offsets. A damaged
 * group does not share them, because it may see wrong contents.
 */
function groupsOf(
  { injected: faults }: CheckOptions,
  { random, world }: Pick<Run, "random" | "world">,
): readonly Group[] {
  const contentsByTopic = new Map<string, Contents>(TOPICS.map(({ name }) => [name, new Map()]));
  const visibilityMs = VISIBILITY_SECONDS * 1000;
  return formsWith(faults).map(({ form, injected }) => {
    const shared = injected === undefined ? contentsByTopic.get(form.topic) : undefined;
    const contents: Contents = shared ?? new Map();
    const judge = new GroupJudge({
      name: form.name,
      contents,
      isOrdered: form.isOrdered,
      visibilityMs,
    });
    const tamperer = injected === undefined ? undefined : new Tamperer(injected);
    const consumers = Array.from({ length: form.consumers }, (_, index) => {
      const partitions = partitionsOf(form, index);
      const own = new SeededRandom(random.u32());
      const { token } = world.server;
      const common = { world, token, group: form, judge, visibilityMs, tamperer };
      return new Consumer({ ...common, partitions, random: own });
    });
    return { form, judge, consumers, injected };
  });
}

/**
 * Returns the forms of all groups. Only one group has effects, so a fault in effects damages that
 * group rather than a separate one.
 */
function formsWith(faults: readonly InjectedFault[]): readonly Pick<Group, "form" | "injected">[] {
  const ofEffects = faults.find((fault) => fault === "effect_twice");
  return [
    ...GROUPS.map((form) => ({
      form,
      injected: form.manner === "effects" ? ofEffects : undefined,
    })),
    ...faults
      .filter((fault) => fault !== ofEffects)
      .map((injected) => ({ form: damagedForm(injected), injected })),
  ];
}

/** Returns the form of a group to be damaged by an injected fault. */
function damagedForm(fault: InjectedFault): GroupForm {
  return {
    name: `damaged_${fault}`,
    topic: "app.all_items",
    consumers: 3,
    manner: "single",
    isOrdered: false,
  };
}

/**
 * Returns the partitions that each consumer polls. A cumulative acknowledgement covers all
 * consumers of a partition, so with such acknowledgements, each partition has a single consumer.
 * Otherwise, every consumer polls all partitions, each starting with a different one.
 */
function partitionsOf({ consumers, manner, topic }: GroupForm, index: number): readonly number[] {
  const count = TOPICS.find(({ name }) => name === topic)?.partitions ?? 1;
  const all = Array.from({ length: count }, (_, partition) => (partition + index) % count);
  return manner === "cumulative" ? all.filter((partition) => partition % consumers === index) : all;
}

async function check(run: Run): Promise<CheckReport> {
  const { groups, options } = run;
  const consumers = groups.flatMap((group) => group.consumers);
  const telling = setInterval(() => options.onProgress(report(run)), PROGRESS_EVERY_MS);
  const flushing = flushNowAndThen(run);
  const working = Promise.all(consumers.map((consumer) => consumer.run()));
  try {
    await Promise.race([writeAndRestart(run), working]);
    for (const consumer of consumers) consumer.settleDown();
    await Promise.race([catchUp(run), working]);
  } finally {
    clearInterval(telling);
    for (const consumer of consumers) consumer.stop();
    await flushing.stop();
  }
  await working;
  for (const { form, judge } of groups) judge.finish(form.topic, run.ledger);
  await judgeEffects(run);
  return report(run);
}

async function writeAndRestart({ ledger, options, random, tokens, world }: Run): Promise<void> {
  const writers = Array.from({ length: options.writers }, (_, index) => {
    const user = USERS[index % USERS.length] ?? "";
    return new Writer({
      world,
      ledger,
      random: new SeededRandom(random.u32()),
      index,
      writerCount: options.writers,
      user,
      userToken: tokens.get(user) ?? "",
      adminToken: world.server.token,
    });
  });
  const restarts = Array.from({ length: options.restarts }, (_, index) => {
    return () => world.restart(index % 2 === 0 ? "SIGKILL" : "SIGTERM");
  });
  const progress = (): number => ledger.changeCount / options.changes;
  await Promise.all([
    ...writers.map((writer) => writer.run(options.changes)),
    spread(restarts, { progress, random }),
  ]);
}

/** Waits until each group is done with as many messages as its topic should have. */
async function catchUp({ groups, ledger }: Run): Promise<void> {
  const deadlineMs = Date.now() + CATCH_UP_MS_MAX;
  const isDone = (): boolean =>
    groups.every(({ form, judge }) => judge.isDone(ledger.count(form.topic)));
  while (!isDone() && Date.now() < deadlineMs) await Bun.sleep(50);
}

function flushNowAndThen({ world }: Run): { stop: () => Promise<void> } {
  let flushing: Promise<unknown> = Promise.resolve();
  let count = 0;
  const timer = setInterval(() => {
    count += 1;
    const what = count % 3 === 0 ? "COMPACT" : "FLUSH";
    flushing = flushing.then(() => world.atWork(() => store(world, what)));
  }, FLUSH_EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await flushing;
    },
  };
}

async function store(world: World, what: "FLUSH" | "COMPACT"): Promise<void> {
  const { life } = world;
  try {
    const tables = ["items", "board", "notes"];
    await world.server.rows(tables.map((name) => `STORAGE ${what} TABLE app.${name}`).join("; "));
  } catch (error) {
    // A restart interrupted the statement, as the campaign intends.
    if (life !== undefined && world.life === life) throw error;
  }
}

/** Checks that every message of the group has exactly one effect. */
async function judgeEffects({ groups, ledger, world }: Run): Promise<void> {
  const group = groups.find(({ form }) => form.manner === "effects");
  if (group === undefined) return;
  const [[made, distinct] = []] = await world.server.rows(
    "SELECT count(*), count(DISTINCT message_offset) FROM app.effects",
  );
  const wanted = ledger.count(group.form.topic);
  const { faults, findings } = group.judge;
  if (made === wanted && distinct === wanted) return;
  faults.effects += 1;
  findings.push(`effects: ${String(made)} of ${String(distinct)} messages, there are ${wanted}`);
}

function report({ groups, ledger, world }: Run): CheckReport {
  const faults = noFaults();
  const sound = groups.filter(({ injected }) => injected === undefined);
  for (const { judge } of sound) {
    for (const fault of Object.keys(faults) as (keyof Faults)[]) {
      faults[fault] += judge.faults[fault];
    }
  }
  const sum = (of: (group: Group) => number): number =>
    groups.reduce((total, group) => total + of(group), 0);
  const ofConsumers = (of: (consumer: Consumer) => number): number =>
    sum(({ consumers }) => consumers.reduce((total, consumer) => total + of(consumer), 0));
  return {
    written: ledger.changeCount,
    delivered: sum(({ judge }) => judge.deliveryCount),
    redelivered: sum(({ judge }) => judge.redeliveryCount),
    crashes: ofConsumers(({ crashes }) => crashes),
    stalls: ofConsumers(({ stalls }) => stalls),
    restarts: { ...world.restarts },
    faults,
    findings: sound.flatMap(({ judge }) => judge.findings),
    noticed: groups.flatMap(({ injected, judge }) =>
      injected !== undefined && FOUND_AS[injected].some((fault) => judge.faults[fault] > 0)
        ? [injected]
        : [],
    ),
  };
}
