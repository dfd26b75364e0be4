/**
 * Verifies that the release files work. The test builds the release, and uses the parts for this
 * machine as the README describes: it unpacks and starts the archive, and builds and runs the
 * image with buildah, which needs no daemon. Executables for other platforms are only inspected.
 * This takes minutes, so only a thorough run does it.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { PLATFORMS, type Platform, platformOf } from "../../scripts/release/platforms.ts";
import { isOneOf } from "../../scripts/support/arguments.ts";
import { type Missing, programMissing, testUnless } from "../support/requirements.ts";
import { startReadyServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";

const ROOT = join(import.meta.dir, "../..");
/**
 * The limits are generous, because each step moves hundreds of megabytes, and the machine may be
 * busy with other work.
 */
const RELEASE_MS_MAX = 1_200_000;
const STEP_MS_MAX = 300_000;
const { version } = manifest;

const here = `${process.platform.replace("win32", "windows")}-${process.arch}`;
const isReleased = isOneOf(PLATFORMS, here);

function releaseMissing(): Missing {
  if (onlyThorough !== undefined) return onlyThorough;
  return isReleased ? undefined : `there is no release for ${here}`;
}

function buildahMissing(): Missing {
  if (releaseMissing() !== undefined) return releaseMissing();
  if (here !== "linux-x64") return "the image is made on Linux on x86-64";
  if (process.getuid?.() !== 0) return "chroot isolation needs root";
  return programMissing("buildah", "buildah");
}

const testRelease = testUnless(releaseMissing());

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-release-test-"));
  if (releaseMissing() !== undefined) return;
  const words = ["--out", folder];
  if (here !== "linux-x64") words.push("--without-image");
  run([process.execPath, join(ROOT, "scripts/release.ts"), ...words], ROOT);
}, RELEASE_MS_MAX);

afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Runs a command to completion. Returns its output. */
function run(command: readonly string[], cwd: string): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], { cwd });
  if (exitCode !== 0) throw new Error(`Cannot run ${command.join(" ")}: ${stderr.toString()}`);
  return stdout.toString();
}

function unpackedFolder(platform: Platform): string {
  const name = `tidemark-${version}-${platform}`;
  if (!existsSync(join(folder, name))) {
    const isZip = platform === "windows-x64";
    run(isZip ? ["unzip", "-q", `${name}.zip`] : ["tar", "-xzf", `${name}.tar.gz`], folder);
  }
  return join(folder, name);
}

testRelease(
  "SHA256SUMS has the checksum of every other file",
  () => {
    const lines = readFileSync(join(folder, "SHA256SUMS"), "utf8").trimEnd().split("\n");
    const named = lines.map((line) => {
      const [sum = "", name = ""] = line.split("  ");
      const bytes = readFileSync(join(folder, name));
      expect([name, new Bun.CryptoHasher("sha256").update(bytes).digest("hex")]).toEqual([
        name,
        sum,
      ]);
      return name;
    });
    const there = readdirSync(folder).filter((name) => name.includes(".") && !/\d$|64$/.test(name));
    expect(named.toSorted()).toEqual(there.toSorted());
  },
  STEP_MS_MAX,
);

testRelease.each([...PLATFORMS])(
  "the archive for %s is complete",
  (platform) => {
    const path = unpackedFolder(platform);
    const name = platform === "windows-x64" ? "tidemark.exe" : "tidemark";
    const unit = platform.startsWith("linux") ? ["tidemark.service"] : [];
    const texts = ["LICENSE", "README.md", "THIRD_PARTY_LICENSES.txt", "config.toml"];
    expect(readdirSync(path).toSorted()).toEqual([...texts, name, ...unit].toSorted());
    expect(statSync(join(path, name)).mode & 0o777).toBe(0o755);
    const program = readFileSync(join(path, name));
    expect(platformOf(program)).toBe(platform);
    expect(program.includes(`name:"tidemark",version:"${version}"`)).toBe(true);
    const readme = readFileSync(join(path, "README.md"), "utf8");
    expect(readme).toStartWith(`# Tidemark ${version}\n`);
    expect(readme).not.toMatch(/\{\w+\}/);
  },
  STEP_MS_MAX,
);

testRelease(
  "the archive of this machine starts and answers",
  async () => {
    if (!isReleased) throw new Error("there is no release for this machine");
    const program = join(unpackedFolder(here), "tidemark");
    expect(run([program, "--version"], folder)).toBe(`${version}\n`);
    const checked = run([program, "--check", "config.toml"], unpackedFolder(here));
    expect(checked).toContain("config.toml is valid");
    const config = { server: { ui_enabled: true } };
    await using server = await startReadyServer({ command: [program], config });
    expect(await server.rows("SELECT 1 + 1")).toEqual([[2]]);
    expect((await server.get("/ui")).status).toBe(200);
  },
  STEP_MS_MAX,
);

testUnless(buildahMissing())(
  "buildah makes the image, whose server starts and verifies",
  () => {
    run(["tar", "-xzf", `tidemark-${version}-image.tar.gz`], folder);
    const context = join(folder, `tidemark-${version}-image`);
    const store = ["--root", join(folder, "store"), "--runroot", join(folder, "run")];
    const buildah = (...words: string[]): string =>
      run(["buildah", ...store, "--storage-driver", "vfs", ...words], context).trim();
    buildah("build", "--quiet", "--isolation", "chroot", "--tag", "tidemark", ".");
    const container = buildah("from", "--quiet", "localhost/tidemark");
    const inside = (...words: string[]): string =>
      buildah("run", "--isolation", "chroot", container, "--", "/tidemark", ...words);
    expect(inside("--version")).toBe(version);
    // The server in the image listens on all addresses, so it refuses to start without a secret.
    expect(() => inside("/config.toml")).toThrow(/secret/i);
    const root = buildah("mount", container);
    try {
      expect(readdirSync(root)).toEqual(expect.arrayContaining(["data", "logs", "tmp"]));
      expect(statSync(join(root, "tmp")).mode & 0o7777).toBe(0o1777);
    } finally {
      buildah("umount", container);
    }
  },
  STEP_MS_MAX,
);
