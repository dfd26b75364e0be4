/**
 * Tests the building blocks of a release: archives, the package list, and the platform of an
 * executable.
 */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tarGz, zip } from "../../scripts/release/archives.ts";
import { billOfMaterials } from "../../scripts/release/bill_of_materials.ts";
import {
  directDependencies,
  type Lock,
  licenceTexts,
  packagesOf,
} from "../../scripts/release/packages.ts";
import { platformOf } from "../../scripts/release/platforms.ts";
import { programMissing, testThoroughly, testUnless } from "../support/requirements.ts";

const ROOT = join(import.meta.dir, "../..");
const SECONDS = Date.UTC(2026, 0, 31, 12, 30, 44) / 1000;

const FILES = [
  { path: "a/program", bytes: new Uint8Array(70_000).fill(7), mode: 0o755 },
  { path: "a/é.txt", bytes: new TextEncoder().encode("text\n"), mode: 0o644 },
  { path: "a/empty", bytes: new Uint8Array(0), mode: 0o644 },
  { path: "a/folder/", bytes: new Uint8Array(0), mode: 0o750 },
];

/**
 * The part of the CycloneDX library that validates documents. The library's own type definitions
 * cover far more than the tests need.
 */
interface CycloneDx {
  readonly Spec: { readonly Version: { readonly v1dot6: string } };
  readonly Validation: {
    readonly JsonStrictValidator: new (
      version: string,
    ) => {
      /** Validates a document. Resolves to null if the document is valid. */
      validate(document: string): Promise<object | null>;
    };
  };
}

const lock = (await Bun.file(join(ROOT, "package-lock.json")).json()) as Lock;

/** Unpacks an archive with a system tool. Returns each file's bytes, mode and time. */
function unpacked(archive: Uint8Array, command: readonly string[]): unknown[] {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-archive-"));
  try {
    const path = join(folder, "archive");
    writeFileSync(path, archive);
    const { exitCode, stderr } = Bun.spawnSync([...command, path], { cwd: folder });
    expect([exitCode, stderr.toString()]).toEqual([0, ""]);
    return FILES.map(({ path: name }) => {
      const found = statSync(join(folder, name));
      const size = found.isDirectory() ? 0 : found.size;
      return [name, size, (found.mode & 0o7777).toString(8), found.mtimeMs / 1000];
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const EXPECTED = FILES.map(({ path, bytes, mode }) => [
  path,
  bytes.length,
  mode.toString(8),
  SECONDS,
]);

testUnless(programMissing("tar", "tar"))("tar reads tarGz, with modes and times", () => {
  expect(unpacked(tarGz(FILES, SECONDS), ["tar", "-xzf"])).toEqual(EXPECTED);
});

testUnless(programMissing("unzip", "unzip"))("unzip reads zip, with modes", () => {
  const withoutTimes = (rows: unknown[][]): unknown[] => rows.map((row) => row.slice(0, 3));
  const found = unpacked(zip(FILES, SECONDS), ["unzip", "-q"]) as unknown[][];
  expect(withoutTimes(found)).toEqual(withoutTimes(EXPECTED));
});

test("archives of the same files have the same bytes, and a path may have 100 bytes", () => {
  for (const pack of [tarGz, zip]) {
    expect(Bun.hash(pack(FILES, SECONDS))).toBe(Bun.hash(pack(FILES, SECONDS)));
    const named = (path: string): Uint8Array =>
      pack([{ path, bytes: new Uint8Array(1), mode: 0o644 }], SECONDS);
    expect(() => named("x".repeat(100))).not.toThrow();
    expect(() => named("x".repeat(101))).toThrow("at most 100 bytes");
  }
});

test("packagesOf lists Bun and the packages that the server and the page import, but no tools", () => {
  const packages = packagesOf(lock);
  const names = packages.map(({ name }) => name);
  const direct = directDependencies(lock);
  expect(direct).toContain("react-dom");
  expect(direct.filter((name) => !names.includes(name))).toEqual([]);
  expect(names).toContain("scheduler");
  expect(names.filter((name) => /typescript|biome|duckdb|msgpackr-extract/.test(name))).toEqual([]);
  for (const { sha512, dependencies } of packages) {
    expect(sha512).toMatch(/^[0-9a-f]{128}$/);
    expect(dependencies.filter((name) => !names.includes(name))).toEqual([]);
  }
});

test("packagesOf refuses a package whose licence or checksum is unknown", () => {
  const entry = { version: "1.0.0", license: "MIT", integrity: "sha512-AA==" };
  const of = (changed: object): Lock => ({
    version: "1",
    packages: { "node_modules/a": { ...entry, ...changed } },
  });
  expect(packagesOf(of({})).length).toBe(1);
  for (const changed of [{ license: undefined }, { integrity: "sha1-AA==" }]) {
    expect(() => packagesOf(of(changed as object))).toThrow('Cannot list "a"');
  }
});

testThoroughly(
  "billOfMaterials is valid CycloneDX 1.6, and identical for the same release",
  async () => {
    const release = { version: "1.2.3", seconds: SECONDS, direct: directDependencies(lock) };
    const bill = billOfMaterials(packagesOf(lock), release);
    const load = createRequire(import.meta.url);
    const { Spec, Validation } = load("@cyclonedx/cyclonedx-library") as CycloneDx;
    const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
    expect(await validator.validate(JSON.stringify(bill))).toBeNull();
    expect(billOfMaterials(packagesOf(lock), release)).toEqual(bill);
    // The validator refuses a damaged document, which shows that it really validates.
    const damaged = { ...bill, components: [{ type: "nonsense", name: "a" }] };
    expect(await validator.validate(JSON.stringify(damaged))).not.toBeNull();
  },
);

test("every reference in billOfMaterials leads to a component, and all components are reachable", () => {
  const release = { version: "1.2.3", seconds: SECONDS, direct: directDependencies(lock) };
  const { components, dependencies, metadata } = billOfMaterials(packagesOf(lock), release) as {
    components: { "bom-ref": string }[];
    dependencies: { ref: string; dependsOn: string[] }[];
    metadata: { component: { "bom-ref": string } };
  };
  const edges = new Map(dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const reached = new Set<string>();
  const visit = (ref: string): void => {
    if (reached.has(ref)) return;
    reached.add(ref);
    expect([ref, edges.has(ref)]).toEqual([ref, true]);
    for (const next of edges.get(ref) ?? []) visit(next);
  };
  visit(metadata.component["bom-ref"]);
  expect(components.map((each) => each["bom-ref"]).filter((ref) => !reached.has(ref))).toEqual([]);
});

test("licenceTexts contains the text of each package, or the page that has it", () => {
  const packages = packagesOf(lock);
  const text = licenceTexts(packages, ROOT);
  for (const { name, version } of packages) expect(text).toContain(`\n${name} ${version} (`);
  expect(text).toContain("Permission is hereby granted");
  expect(text).toContain("See https://bun.com");
});

test("platformOf recognizes the machine in each format, and nothing else", () => {
  const program = (place: (view: DataView) => void): Uint8Array => {
    const bytes = new Uint8Array(128);
    place(new DataView(bytes.buffer));
    return bytes;
  };
  const elf = (machine: number): Uint8Array =>
    program((view) => {
      view.setUint32(0, 0x7f454c46);
      view.setUint16(18, machine, true);
    });
  const machO = (processor: number): Uint8Array =>
    program((view) => {
      view.setUint32(0, 0xfeedfacf, true);
      view.setUint32(4, processor, true);
    });
  const pe = (machine: number, offset = 64): Uint8Array =>
    program((view) => {
      view.setUint16(0, 0x4d5a);
      view.setUint32(60, offset, true);
      view.setUint32(64, 0x50450000);
      view.setUint16(68, machine, true);
    });
  expect([62, 183, 3].map((machine) => platformOf(elf(machine)))).toEqual([
    "linux-x64",
    "linux-arm64",
    undefined,
  ]);
  expect(platformOf(machO(0x0100000c))).toBe("darwin-arm64");
  expect(platformOf(machO(0x01000007))).toBeUndefined();
  expect(platformOf(pe(0x8664))).toBe("windows-x64");
  for (const other of [pe(0xaa64), pe(0x8664, 127), new Uint8Array(128), new Uint8Array(0)]) {
    expect(platformOf(other)).toBeUndefined();
  }
});

test("release.ts refuses an unknown platform and a tag that is not this version", () => {
  const refusal = (code: number, ...words: string[]): string => {
    const command = [process.execPath, join(ROOT, "scripts/release.ts"), ...words];
    const { exitCode, stderr } = Bun.spawnSync(command, { cwd: ROOT });
    expect(exitCode).toBe(code);
    return stderr.toString();
  };
  expect(refusal(2, "--platforms", "linux-x64,amiga")).toStartWith(
    'Cannot read --platforms "linux-x64,amiga": it must be ' +
      "linux-x64,linux-arm64,darwin-arm64,windows-x64",
  );
  expect(refusal(1, "--tag", "v9.9.9")).toContain(
    'Cannot release the tag "v9.9.9": package.json has',
  );
});
