/**
 * Verifies that the files for the hosting service and for editors are well formed, and run only
 * commands that exist. The tests parse the files and check them against the rules of their
 * formats.
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const textOf = (path: string): string => readFileSync(join(ROOT, path), "utf8");

interface Step {
  readonly uses?: string;
  readonly run?: string;
}

interface Workflow {
  readonly name: string;
  readonly on: object;
  readonly permissions: object;
  readonly jobs: Readonly<
    Record<string, { readonly "runs-on": string; readonly steps: readonly Step[] }>
  >;
}

interface FormElement {
  readonly type: string;
  readonly id?: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

interface IssueForm {
  readonly name: string;
  readonly description: string;
  readonly body: readonly FormElement[];
}

const WORKFLOWS = readdirSync(join(ROOT, ".github/workflows"));
const FORMS = readdirSync(join(ROOT, ".github/ISSUE_TEMPLATE"));

/** Returns the commands in a workflow's jobs. */
function commandsOf(name: string): string[] {
  const { jobs } = Bun.YAML.parse(textOf(`.github/workflows/${name}`)) as Workflow;
  return Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
}

test.each(WORKFLOWS)(
  "%s states when it runs, with which permissions and on which machine",
  (name) => {
    const workflow = Bun.YAML.parse(textOf(`.github/workflows/${name}`)) as Workflow;
    expect(Object.keys(workflow.on).length).toBeGreaterThan(0);
    expect(Object.keys(workflow.permissions)).toEqual(["contents"]);
    for (const job of Object.values(workflow.jobs)) {
      expect(job["runs-on"]).toMatch(/^ubuntu-\d/);
      for (const step of job.steps) {
        expect([step, (step.uses === undefined) !== (step.run === undefined)]).toEqual([
          step,
          true,
        ]);
        if (step.uses !== undefined) expect(step.uses).toMatch(/^[\w-]+\/[\w-]+@v\d+$/);
      }
    }
  },
);

test("changes are checked by .ci/run, which is executable", () => {
  expect(commandsOf("check.yml")).toContain(".ci/run");
  expect(statSync(join(ROOT, ".ci/run")).mode & 0o111).toBe(0o111);
});

test("a release is made by an existing script with options that it accepts", () => {
  const command = commandsOf("release.yml").find((each) => each.includes("launch.mjs")) ?? "";
  const [, script = ""] = /launch\.mjs (\S+)/.exec(command) ?? [];
  expect(existsSync(join(ROOT, script))).toBe(true);
  const help = Bun.spawnSync([process.execPath, script, "--help"], { cwd: ROOT });
  const options = command.match(/--[\w-]+/g) ?? [];
  expect(options).toContain("--tag");
  for (const option of options) expect(help.stdout.toString()).toContain(option);
});

test.each(FORMS)("%s is an issue form with a label and an id for each answer", (name) => {
  const form = Bun.YAML.parse(textOf(`.github/ISSUE_TEMPLATE/${name}`)) as IssueForm;
  expect([form.name, form.description].every((text) => text.length > 3)).toBe(true);
  const ids = form.body.flatMap(({ type, id, attributes }) => {
    expect(["markdown", "textarea", "input", "dropdown", "checkboxes"]).toContain(type);
    if (type === "markdown") return [];
    expect(typeof attributes["label"]).toBe("string");
    return [id];
  });
  expect(ids).not.toContain(undefined);
  expect(new Set(ids).size).toBe(ids.length);
});

test("the development container defines an image, the port of the server and a command", () => {
  const container = JSON.parse(textOf(".devcontainer/devcontainer.json")) as {
    readonly image: string;
    readonly forwardPorts: readonly number[];
    readonly postCreateCommand: string;
  };
  expect(container.image).toContain("22-bookworm");
  expect(container.forwardPorts).toEqual([2900]);
  expect(container.postCreateCommand).toStartWith("npm ci");
});

test("the compose file uses only names that the image and the server know", () => {
  const { services, secrets, volumes } = Bun.YAML.parse(textOf("deploy/compose.yaml")) as {
    readonly services: {
      readonly tidemark: {
        readonly build: { readonly context: string; readonly dockerfile: string };
        readonly environment: Readonly<Record<string, string>>;
        readonly secrets: readonly string[];
        readonly volumes: readonly string[];
        readonly ports: readonly string[];
      };
    };
    readonly secrets: object;
    readonly volumes: object;
  };
  const { build, environment, ports, ...service } = services.tidemark;
  expect(existsSync(join(ROOT, "deploy", build.context, build.dockerfile))).toBe(true);
  expect(Object.keys(secrets)).toEqual([...service.secrets]);
  expect(Object.keys(volumes)).toEqual(service.volumes.map((volume) => volume.split(":")[0] ?? ""));
  const image = textOf("Containerfile");
  for (const volume of service.volumes) expect(image).toContain(`["${volume.split(":")[1]}"]`);
  expect(ports.map((port) => port.split(":").at(-1))).toEqual(["2900"]);
  const sample = textOf("config.toml");
  for (const name of Object.keys(environment)) expect(sample).toContain(name.replace(/_FILE$/, ""));
});

test("the Prometheus example scrapes the path that the server provides", () => {
  const { scrape_configs: jobs } = Bun.YAML.parse(textOf("deploy/prometheus.yml")) as {
    readonly scrape_configs: readonly { readonly metrics_path: string }[];
  };
  expect(jobs.map(({ metrics_path: path }) => path)).toEqual(["/metrics"]);
});
