/**
 * Writes the files of a release into a folder.
 *
 *     tidemark-<version>-<platform>.tar.gz   the server, a sample configuration, a README and the
 *                                            licences; for Windows as .zip
 *     tidemark-<version>-image.tar.gz        what `buildah build` or `docker build` needs, for
 *                                            Linux on x86-64
 *     tidemark-<version>.cdx.json            the packages inside (CycloneDX)
 *     SHA256SUMS                             the checksums of these files
 *
 * Without `--platforms`, the script builds for all four platforms. Bun fetches its runtime for
 * other platforms from the npm registry. If a platform cannot be built, the release fails; to omit
 * that platform, list the other platforms with `--platforms`. With `--tag`, the release is refused
 * unless package.json and CHANGELOG.md contain the tag's version. All files carry the time
 * SOURCE_DATE_EPOCH if it is set, and otherwise the time of the last commit.
 */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { type ArchivedFile, tarGz, zip } from "./release/archives.ts";
import { billOfMaterials } from "./release/bill_of_materials.ts";
import { directDependencies, type Lock, licenceTexts, packagesOf } from "./release/packages.ts";
import { PLATFORMS, type Platform, platformOf, programName } from "./release/platforms.ts";
import { flag, optionalText, readOptions, someOf, textOption } from "./support/arguments.ts";

const ROOT = join(import.meta.dir, "..");
const BUILD = join(import.meta.dir, "build.ts");
const { version: VERSION } = manifest;

const PROGRAM_MODE = 0o755;
const FILE_MODE = 0o644;

const text = (path: string, content: string): ArchivedFile => ({
  path,
  bytes: new TextEncoder().encode(content),
  mode: FILE_MODE,
});

const fromRoot = (path: string): string => readFileSync(join(ROOT, path), "utf8");

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

function requireTagged(tag: string): void {
  if (tag !== `v${VERSION}`) {
    fail(`Cannot release the tag "${tag}": package.json has the version ${VERSION}`);
  }
  if (
    !new RegExp(`^## ${VERSION.replaceAll(".", "\\.")} \\(`, "m").test(fromRoot("CHANGELOG.md"))
  ) {
    fail(`Cannot release the tag "${tag}": CHANGELOG.md has no heading "## ${VERSION} (<date>)"`);
  }
}

/** Returns the modification time of all files in the release, in seconds since 1970. */
function releaseSeconds(): number {
  const given = process.env["SOURCE_DATE_EPOCH"];
  if (given !== undefined && /^\d+$/.test(given)) return Number(given);
  const asked = Bun.spawnSync(["git", "log", "-1", "--format=%ct"], { cwd: ROOT });
  const seconds = Number(asked.stdout.toString().trim());
  return asked.success && seconds > 0
    ? seconds
    : fail(
        "Cannot date the release: this is not a git clone; set SOURCE_DATE_EPOCH to the date in seconds since 1970",
      );
}

/** Compiles the server for all platforms, and prepares the image if requested. */
function build(folder: string, withImage: boolean): void {
  const targets = ["--target", platforms.join(","), "--out", folder];
  const command = [process.execPath, BUILD, ...targets, ...(withImage ? ["--container"] : [])];
  const built = Bun.spawnSync(command, { cwd: ROOT, stdout: "ignore", stderr: "pipe" });
  if (!built.success) {
    fail(
      `Cannot make the release; --platforms can leave a platform out:\n${built.stderr.toString()}`,
    );
  }
  for (const platform of platforms) {
    const made = platformOf(readFileSync(join(folder, programName(platform))));
    if (made !== platform) {
      fail(`Cannot release for ${platform}: the executable is for ${made ?? "no known platform"}`);
    }
  }
}

function inFolder(folder: string, files: readonly ArchivedFile[]): ArchivedFile[] {
  return files.map(({ path, bytes, mode }) => ({ path: `${folder}/${path}`, bytes, mode }));
}

/** Returns the files of the archive for a platform, all in one folder. */
function filesFor(platform: Platform, program: Uint8Array, licences: string): ArchivedFile[] {
  const isWindows = platform.startsWith("windows");
  const name = isWindows ? "tidemark.exe" : "tidemark";
  const unit =
    "| `tidemark.service` | a unit for systemd; its first lines say how to install it |\n";
  const isLinux = platform.startsWith("linux");
  const readme = readFileSync(join(import.meta.dir, "release/archive_readme.md"), "utf8")
    .replaceAll("{version}", VERSION)
    .replaceAll("{platform}", platform)
    .replaceAll("{program}", name)
    .replaceAll("{call}", isWindows ? ".\\tidemark.exe" : "./tidemark")
    .replaceAll("{more}\n", isLinux ? `${unit}\n` : "\n");
  const files: ArchivedFile[] = [
    { path: name, bytes: program, mode: PROGRAM_MODE },
    text("README.md", readme),
    text("LICENSE", fromRoot("LICENSE")),
    text("THIRD_PARTY_LICENSES.txt", licences),
    text("config.toml", fromRoot("config.toml")),
  ];
  if (isLinux) files.push(text("tidemark.service", fromRoot("deploy/tidemark.service")));
  const folder = `tidemark-${VERSION}-${platform}`;
  return inFolder(folder, files);
}

/** Returns the files that the Containerfile copies, at the paths where it expects them. */
function filesOfImage(folder: string, licences: string): ArchivedFile[] {
  const root = join(folder, "container");
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" }).toSorted();
  const inImage = paths.map((path) => {
    const found = statSync(join(root, path));
    const isFolder = found.isDirectory();
    return {
      path: `dist/container/${path}${isFolder ? "/" : ""}`,
      bytes: isFolder ? new Uint8Array(0) : readFileSync(join(root, path)),
      mode: found.mode & 0o7777,
    };
  });
  const notices = [
    text("LICENSE", fromRoot("LICENSE")),
    text("THIRD_PARTY_LICENSES.txt", licences),
  ];
  const all = [text("Containerfile", fromRoot("Containerfile")), ...notices, ...inImage];
  return inFolder(`tidemark-${VERSION}-image`, all);
}

const options = readOptions({
  platforms: someOf(PLATFORMS, "the platforms to build for"),
  "without-image": flag("omits the files of the container image"),
  tag: optionalText("<tag>", "the tag, which must match the version, as in v0.1.0"),
  out: textOption("<folder>", "the output folder", join(ROOT, "dist/release")),
});
const { out, tag } = options;
const platforms = [...new Set(options.platforms)];
if (tag !== undefined) requireTagged(tag);
const hasImage = platforms.includes("linux-x64") && !options["without-image"];
if (hasImage && (process.platform !== "linux" || process.arch !== "x64")) {
  fail(
    "Cannot make the image: the libraries in it come from this machine, which should run Linux " +
      "on x86-64; use --without-image",
  );
}

const seconds = releaseSeconds();
const lock = JSON.parse(fromRoot("package-lock.json")) as Lock;
const packages = packagesOf(lock);
const licences = licenceTexts(packages, ROOT);
const work = mkdtempSync(join(tmpdir(), "tidemark-release-"));
const made = new Map<string, Uint8Array>();
// A failure ends the process without running `finally` blocks, so an exit handler removes the
// temporary folder.
process.on("exit", () => rmSync(work, { recursive: true, force: true }));
build(work, hasImage);
for (const platform of platforms) {
  const program = readFileSync(join(work, programName(platform)));
  const files = filesFor(platform, program, licences);
  const name = `tidemark-${VERSION}-${platform}`;
  if (platform === "windows-x64") made.set(`${name}.zip`, zip(files, seconds));
  else made.set(`${name}.tar.gz`, tarGz(files, seconds));
}
if (hasImage) {
  made.set(`tidemark-${VERSION}-image.tar.gz`, tarGz(filesOfImage(work, licences), seconds));
}
const direct = directDependencies(lock);
const bill = billOfMaterials(packages, { version: VERSION, seconds, direct });
made.set(
  `tidemark-${VERSION}.cdx.json`,
  new TextEncoder().encode(`${JSON.stringify(bill, undefined, 2)}\n`),
);
mkdirSync(out, { recursive: true });
const sums = [...made].map(([name, bytes]) => {
  writeFileSync(join(out, name), bytes);
  process.stdout.write(`${join(out, name)}  ${(bytes.length / 1e6).toFixed(1)} MB\n`);
  return `${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}  ${name}\n`;
});
writeFileSync(join(out, "SHA256SUMS"), sums.join(""));
